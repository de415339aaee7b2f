"""Files and folders of this machine: private to the user, and temporary ones."""
