"""What the pure evaluator raises."""


class EvaluationError(ArithmeticError):
    """The pure evaluator met what PostgreSQL answers with an error."""
