"""From a parsed query to what motes run and what the gateway does with their rows.

The types that others use are in :mod:`skerry.plan.model` (plans, mote queries, installations, feeds);
:func:`skerry.plan.planner.plan_query` makes a plan from text, :mod:`skerry.plan.residual` evaluates
rows for users, :mod:`skerry.plan.partials` does so for aggregates, :mod:`skerry.plan.explain` tells
a user what would run where.
"""
