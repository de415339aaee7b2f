"""Plans as Spark SQL: the one place where query text is made. Pure."""

from headrace.render.plans import render
from headrace.render.inputs import PlanInput, inputs_of

__all__ = ["PlanInput", "inputs_of", "render"]
