"""Plans as Spark SQL: the one place where query text is made. Pure."""

from headrace.render.inputs import PlanInput, inputs_of
from headrace.render.plans import render

__all__ = ["PlanInput", "inputs_of", "render"]
