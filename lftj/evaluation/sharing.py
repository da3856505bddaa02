"""Which aggregate heads of a rule are fed by one search, and what it gives them.

Heads of one rule aggregate the same assignments.  One search serves several when its rows hold
all variables that any of them reads; how many assignments are behind a row is its weight.  Such a search
may cost more than one for each head: of ``n(b, sum(a), max(c)) <- r(a, b), s(b, c).`` each
aggregate needs the rows of one atom, and both together need all paths.  So

1. heads whose variables are among another's are always fed by the other's search, and one search feeds all
   where each would search for the same variables, of which theirs are computed;
2. what is left goes into one search if that is estimated at no more work than those
   apart, and else stays apart;
3. of a rule with alternatives, whose assignments are made distinct first, all heads share; and so they do
   of a body of one atom, of which there are no more rows than the relation has.

The work is the operations of a search and what sorting its rows is worth, by
:mod:`lftj.planning.cost_model`, unpiloted.

Cost: nothing for a single set of variables that are searched for; else planning once for each set, and once
for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lftj.aggregates.whole import row_variables
from lftj.language.body import CheckedHead, CheckedRule
from lftj.planning.cost_model import DISTINCT_COST, CostModel
from lftj.planning.planner import candidates
from lftj.search.problem import JoinProblem, emit_depth
from lftj.storage.catalog import Catalog

Heads = list[CheckedHead]


def searches(
    heads: Sequence[CheckedHead],
    rule: CheckedRule,
    problem_of: Callable[[Sequence[CheckedHead]], tuple[JoinProblem, Catalog]],
) -> list[Heads]:
    """Aggregate ``heads`` of a rule by the search that feeds them, each in the order given.

    ``problem_of``: what has to be searched for some of them together, where the rule has one body, and the
    tables that it reads.
    """
    body = rule.bodies[0]
    if len(rule.bodies) > 1 or len(body.atoms) + len(body.negations) == 1:
        return [list(heads)] if heads else []
    apart: list[Heads] = []
    for head in sorted(heads, key=lambda head: -len(set(row_variables(head)))):
        wider = (fed for fed in apart if set(row_variables(head)) <= set(row_variables(fed[0])))
        fed = next(wider, None)
        if fed is None:
            apart.append([head])
        else:
            fed.append(head)
    if len(apart) > 1:
        together, alone = problem_of(heads), [problem_of(fed) for fed in apart]
        if all(set(problem.emitted) == set(together[0].emitted) for problem, _ in alone):
            return [list(heads)]
        if _work(*together, len(apart)) <= sum(_work(*each, 1) for each in alone):
            return [list(heads)]
    return [[head for head in heads if head in fed] for fed in apart]


def _work(problem: JoinProblem, catalog: Catalog, n_sorts: int) -> float:
    """Estimated operations of a search, sorting what it gives ``n_sorts`` times included."""
    model = CostModel(problem, catalog)
    costs = candidates(model)
    order = min(costs, key=lambda order: costs[order])
    emit = emit_depth(problem, order)
    n_rows = model.estimates(order)[emit - 1].matches if emit else 1.0
    return costs[order] + DISTINCT_COST * n_sorts * n_rows
