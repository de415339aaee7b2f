"""The example of strata.md: its network drawn and explained. A test asks a project the same."""

from __future__ import annotations

from collections.abc import Mapping

from docs.generators.blocks import fenced
from headrace.graph.draw import draw_text
from headrace.graph.network import Network
from headrace.observe.strata_status import explain_network

EXAMPLE = Network(
    {
        "public.blocked": {"public.edges": ()},
        "public.far": {"public.edges": (), "public.near": ()},
        "public.near": {"public.far": (), "public.blocked": ("NOT EXISTS",)},
    }
)


def strata_blocks() -> Mapping[str, str]:
    """The blocks of the page, by their names."""
    return {
        "graph": fenced(draw_text(EXAMPLE)),
        "explanation": fenced(str(explain_network(EXAMPLE))),
    }
