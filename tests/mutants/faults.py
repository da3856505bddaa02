"""Deliberate faults, and the test files that have to notice each of them.

A fault is one small change of one file: a bound that is off by one, a sign that is lost, a step that is left
out.  Those of kernels are chosen so that loops still end.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """``old`` stands once in the file and becomes ``new``; one of ``tests``, below tests/, has to fail."""

    what: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, source: str) -> str:
        """The file's text with the fault in it.  Raises ValueError where ``old`` does not stand once."""
        if source.count(self.old) != 1:
            raise ValueError(f"{self.path}: {source.count(self.old)} times {self.old!r}, not once")
        return source.replace(self.old, self.new)


VERSIONS = ("storage/test_index_version.py",)
RUNS = ("storage/test_runs.py",)
REGIONS = ("search/test_region_search.py",)
QUERIES = ("search/test_kernel.py", "evaluation/test_query_oracle.py")
COVERAGE = ("maintenance/strategies/test_coverage_invariant.py",)
DELTA = ("maintenance/strategies/test_delta.py",)
AUTO = ("maintenance/strategies/test_auto.py",)
LISTS = (
    "values/test_lists.py",
    "evaluation/test_list_aggregates.py",
    "maintenance/workspace/test_lists_kept.py",
)
SENSITIVITY = ("indices/test_sensitivity.py",)
CELLS = ("spark_bridge/test_cells_laws.py",)
STATE = ("spark_bridge/test_state_store.py",)
BAGS = ("database/test_bags.py", "maintenance/workspace/test_bags_kept.py")
BAG_HEADS = ("evaluation/test_bag_heads.py",)
WORKSPACE = ("maintenance/workspace/test_workspace.py", "maintenance/workspace/test_workspace_errors.py")

CUTS = ("search/test_cuts.py",)
WIDE = ("storage/test_wide_relations.py",)
REDUCING = ("planning/test_reducing.py",)
DECIMALS = ("values/test_unscaled.py", "evaluation/test_decimals_on_rows.py")
DEMAND = ("rewriting/test_demand.py",)
RESULTS = ("maintenance/workspace/test_results.py",)

FAULTS = (
    # -- wide relations, filtered rows, numbers on rows --------------------------------------
    Fault(
        "rows do not say which of their values are NULL",
        "lftj/values/rows.py",
        "                packed[begin + (column >> 3)] |= np.uint8(1 << (column & 7))\n",
        "                pass\n",
        WIDE,
    ),
    Fault(
        "texts of a row are told apart by their bytes alone, one behind the other",
        "lftj/values/rows.py",
        "                    packed[own + byte] = np.uint8((length >> (8 * byte)) & 255)\n",
        "                    packed[own + byte] = np.uint8(0)\n",
        WIDE,
    ),
    Fault(
        "-0.0 and 0.0 are two values of a row",
        "lftj/values/rows.py",
        "floats = data.view(one.floats) + one.floats(0.0)",
        "floats = data.view(one.floats).copy()",
        WIDE,
    ),
    Fault(
        "an index of a wide relation has no codes of rows",
        "lftj/storage/relation_version.py",
        "        return self.index_at((levels_of(columns, equal, self.schema.identity), equal))\n",
        "        return self.index_at((columns or (0,), equal))\n",
        WIDE,
    ),
    Fault(
        "NULL comes into a column that is read off rows",
        "lftj/storage/upkeep.py",
        "self._held, self.read = frozenset(keys), frozenset(read)",
        "self._held, self.read = frozenset(keys), frozenset()",
        WIDE,
    ),
    Fault(
        "a literal is looked for before its column is in the dictionary",
        "lftj/evaluation/plans.py",
        "                    table.code(number)\n",
        "                    pass\n",
        WIDE,
    ),
    Fault(
        "what is read off rows is read off the first ones",
        "lftj/values/row_values.py",
        "        self._codes = {name: codes[places] for name, codes in self._codes.items()}\n",
        "        self._codes = {name: codes[: len(places)] for name, codes in self._codes.items()}\n",
        WIDE,
    ),
    Fault(
        "a part of a relation has each of its projected rows once",
        "lftj/planning/reducing.py",
        "        counted = (len(columns),) if numbered else ()\n",
        "        counted = ()\n",
        REDUCING,
    ),
    Fault(
        "a product of whole numbers may need more than 64 bits",
        "lftj/values/unscaled.py",
        "    return least > KEY_MIN and most <= KEY_MAX\n",
        "    return True\n",
        DECIMALS,
    ),
    # -- storage: versions, seeks, sums of signed rows ---------------------------------------
    Fault(
        "a stage of a search is up to date once it was built",
        "lftj/search/machine/stage.py",
        "    return stage.stamp == node_at(stage.bound_at).stamp\n",
        "    return stage.stamp > 0\n",
        QUERIES,
    ),
    Fault(
        "a list that a stage has cut stays cut when the stage is another",
        "lftj/search/machine/cut.py",
        "        if cut.stamp != stage.stamp and not",
        "        if cut.stamp == 0 and not",
        CUTS,
    ),
    Fault(
        "where a stage's room is full its lists are cut all the same",
        "lftj/search/machine/cut.py",
        "        return False\n    out =",
        "        filled = 0\n    out =",
        CUTS,
    ),
    Fault(
        "the last depth is counted although its stages are those of another binding",
        "lftj/search/machine/counted.py",
        "    while staged < n_stages:\n",
        "    while staged < 0:\n",
        CUTS,
    ),
    Fault(
        "a search's upper bound leaves its own key out",
        "lftj/search/machine/block.py",
        "end = beyond(cursor, view(cursor.keys, end), start, end, high + 1)",
        "end = beyond(cursor, view(cursor.keys, end), start, end, high)",
        QUERIES,
    ),
    Fault(
        "a negated atom refuses every key up to its last",
        "lftj/search/intersect.py",
        "            kept += key < landed\n",
        "            kept += 0\n",
        QUERIES,
    ),
    Fault(
        "of the lists of a counted depth the last one counts",
        "lftj/search/machine/rows.py",
        "            search.weight += count\n",
        "            search.weight = count\n",
        QUERIES,
    ),
    Fault(
        "merging runs keeps tuples whose weights cancel",
        "lftj/storage/runs.py",
        "        if its != 0:\n            weight += its\n",
        "        if True:\n            weight += its\n",
        RUNS,
    ),
    Fault(
        "merging runs takes a weight of the wrong run",
        "lftj/storage/runs.py",
        "its += younger[younger_sums + j + 1] - younger[younger_sums + j]",
        "its += older[older_sums + i + 1] - older[older_sums + i]",
        RUNS,
    ),
    Fault(
        "runs are not merged in time",
        "lftj/storage/runs.py",
        "        if run.length > 2 * n:\n",
        "        if run.length > n:\n",
        RUNS,
    ),
    Fault(
        "a merge of runs forgets what it has read when the second pass begins",
        "lftj/storage/runs.py",
        "        self._cursor = np.zeros(CURSOR_FIELDS, np.int64)\n        self._out = out",
        "        self._out = out",
        RUNS,
    ),
    Fault(
        "a branch that a later run empties is no surgery",
        "lftj/storage/net_weights.py",
        "if (old > 0) != (new[level, row] > 0):",
        "if (old > 0) != (new[level, row] >= 0):",
        VERSIONS,
    ),
    Fault(
        "galloping forgets the last position",
        "lftj/storage/seek.py",
        "above = min(below + step, end)",
        "above = min(below + step, end - 1)",
        ("storage/test_seek.py",),
    ),
    Fault(
        "an upper bound stops before equal keys",
        "lftj/storage/seek.py",
        "if keys[middle] <= key:",
        "if keys[middle] < key:",
        ("storage/test_seek.py",),
    ),
    Fault(
        "rows that cancel to a negative weight are dropped",
        "lftj/storage/zset.py",
        "present = weights != 0",
        "present = weights > 0",
        ("storage/test_zset.py",),
    ),
    Fault(
        "equal rows keep the last weight alone",
        "lftj/storage/signed_rows.py",
        "total += weights[order[row]]",
        "total = weights[order[row]]",
        ("storage/test_signed_rows.py",),
    ),
    Fault(
        "a tuple becomes visible one assignment late",
        "lftj/storage/support.py",
        "if (before[row] >= least) != (after[row] >= least):",
        "if (before[row] > least) != (after[row] > least):",
        ("maintenance/workspace/test_maintenance_oracle.py",),
    ),
    # -- search: cursors and what they record -------------------------------------------------
    Fault(
        "a cursor lands on keys whose tuples are all erased",
        "lftj/search/machine/cursor.py",
        "if weight_at(cursor, at, least) > 0:",
        "if weight_at(cursor, at, least) >= 0:",
        REGIONS,
    ),
    Fault(
        "a look-up by rank goes back",
        "lftj/storage/seek.py",
        "return max(start, min(end, np.int64(view32(ranks, spread + 1)[np.uint64(key - base)])))",
        "return min(end, np.int64(view32(ranks, spread + 1)[np.uint64(key - base)]))",
        ("storage/test_seek.py",),
    ),
    Fault(
        "below a key that a negated atom does not hold it shows what is below another",
        "lftj/search/machine/cursor.py",
        "    cursor.at = -1\n    if cursor.active:\n        for",
        "    if cursor.active:\n        for",
        REGIONS,
    ),
    Fault(
        "a record begins one key late",
        "lftj/search/machine/cursor.py",
        "    cursor.record_low = low\n",
        "    cursor.record_low = low + 1\n",
        COVERAGE,
    ),
    Fault(
        "a record ends where its last part began",
        "lftj/search/machine/cursor.py",
        "cursor.record_high = max(to, high)",
        "cursor.record_high = max(to, low)",
        COVERAGE,
    ),
    Fault(
        "a node in blocks does not open its negated atoms",
        "lftj/search/machine/block.py",
        "    open_negations(node)\n",
        "",
        REGIONS,
    ),
    Fault(
        "the leader of a block tries all keys below those of others",
        "lftj/search/machine/block.py",
        "start = gallop(keys, start + 1, end, key)",
        "start = start + 1",
        REGIONS,
    ),
    Fault(
        "a scan takes a look-up that fails for one that lands on the next key",
        "lftj/search/scan.py",
        "found += ranks[offset + np.uint64(1)] > ranks[offset]",
        "found += 1",
        ("search/test_scan.py",),
    ),
    Fault(
        "a sum of whole numbers loses what it carries to its high word",
        "lftj/aggregates/running_sums.py",
        "highs[group] += high + np.int64(after < before)",
        "highs[group] += high",
        ("aggregates/test_running_sums.py",),
    ),
    Fault(
        "a key that a run erases is there again behind it",
        "lftj/search/machine/apart.py",
        "cursor.position = position + 1",
        "cursor.position = position",
        REGIONS,
    ),
    Fault(
        "cover goes to the first participant that lacks a key, whose turn ever it is",
        "lftj/search/machine/search.py",
        "return np.int64(number + 1)",
        "return np.int64(0)",
        COVERAGE,
    ),
    Fault(
        "after a match the first participant steps, whose turn ever it is",
        "lftj/search/machine/node.py",
        "    turn = node.turn\n    cursor = cursor_at(view",
        "    turn = np.int64(0)\n    cursor = cursor_at(view",
        COVERAGE,
    ),
    Fault(
        "an exact record goes on when its iterator seeks the next key",
        "lftj/search/machine/cursor.py",
        "cursor.moved = max(np.int64(1), position - before)",
        "cursor.moved = position - before - 1",
        REGIONS,
    ),
    # -- indices: records, groups in order -----------------------------------------------------
    Fault(
        "a full tail loses its last record",
        "indices/record_contents.py",
        "parts.append(list(self.living_tail()))",
        "parts.append(list(self.living_tail()[:, :-1]))",
        SENSITIVITY,
    ),
    Fault(
        "a record that is joined with a shorter one inside it is cut",
        "indices/record_joining.py",
        "hi = max(hi, rows[lo_at + 1, row])",
        "hi = rows[lo_at + 1, row]",
        SENSITIVITY,
    ),
    Fault(
        "a stab goes on looking where all records are dead",
        "indices/record_marks.py",
        "changed = read_maximum(pool, table, run, level_at + node) != maximum",
        "changed = read_maximum(pool, table, run, level_at + node) < maximum",
        SENSITIVITY,
    ),
    Fault(
        "a missing number next to the upper end is left out",
        "indices/complement.py",
        "if value >= high:",
        "if value >= high - 1:",
        ("indices/test_complement.py",),
    ),
    Fault(
        "an inserted record is not counted where its node was split",
        "indices/scan_climb.py",
        "put_slot(pool, right, slot - length, key, value, child)",
        "put_slot(pool, right, slot - length, key, value - value, child)",
        ("indices/test_scan_tree.py",),
    ),
    # -- maintenance: delta rules, the choice of a strategy ------------------------------------------
    Fault(
        "a term reads atoms behind it as they are now",
        "lftj/planning/term.py",
        "side=Side.NEW if at < place else Side.OLD",
        "side=Side.NEW",
        DELTA,
    ),
    Fault(
        "a term of a negated atom adds what came",
        "lftj/planning/term.py",
        "-1 if negated else 1",
        "1",
        DELTA,
    ),
    Fault(
        "a row of a term gets the weight of the next change",
        "lftj/search/regions/weighted.py",
        "term.sign * weights[binding]",
        "term.sign * weights[min(binding + 1, len(weights) - 1)]",
        DELTA,
    ),
    Fault(
        "counted assignments are left over for the next row",
        "lftj/search/machine/rows.py",
        "        search.weight = 0\n",
        "        search.weight = 1\n",
        DELTA,
    ),
    Fault(
        "records that are prepared do not follow what commits change",
        "maintenance/strategies/auto/auto_body.py",
        "            self._follow(change, stats)\n",
        "",
        AUTO,
    ),
    Fault(
        "to follow changes in records that are prepared may cost anything",
        "maintenance/strategies/auto/auto_body.py",
        "figures, price - self._followed)",
        "figures, None)",
        AUTO,
    ),
    Fault(
        "the account of a strategy forgets what was won",
        "maintenance/strategies/auto/ledger.py",
        "max(-self.price, self.balance + active - other)",
        "max(0.0, self.balance + active - other)",
        AUTO,
    ),
    Fault(
        "what a commit has spent is not looked at",
        "lftj/search/regions/evaluation.py",
        "budget is not None and operations.total > budget:",
        "budget is not None and operations.total > 2**62:",
        AUTO,
    ),
    # -- maintenance: oracle, regions, changes, groups, commits ----------------------------------
    Fault(
        "what a negated atom gains counts as gained",
        "maintenance/strategies/trace/oracle.py",
        "sign = -1 if participant.negated else 1",
        "sign = 1",
        COVERAGE,
    ),
    Fault(
        "regions that are equal are searched twice",
        "maintenance/strategies/trace/oracle.py",
        "extends = shorter <= found[0, place]",
        "extends = shorter < found[0, place]",
        COVERAGE,
    ),
    Fault(
        "what went is looked for in the new version",
        "maintenance/strategies/trace/body_trace.py",
        "(MINUS, change.old, -1)",
        "(MINUS, change.new, -1)",
        COVERAGE,
    ),
    Fault(
        "regions where a branch came are searched without records",
        "maintenance/strategies/trace/body_trace.py",
        "self._search_below(rows, versions, sign == PLUS, stats, paths, budget)",
        "self._search_below(rows, versions, sign == MINUS, stats, paths)",
        COVERAGE,
    ),
    Fault(
        "a record of a reached node is dead",
        "maintenance/strategies/trace/dead_records.py",
        "dead = 0 <= came_to < depth or 0 <= went_to < depth",
        "dead = 0 <= came_to <= depth or 0 <= went_to <= depth",
        COVERAGE,
    ),
    Fault(
        "an old record stands for one that is not",
        "maintenance/strategies/trace/dead_records.py",
        "(streams == stream) & np.isin(",
        "(streams < 0) & np.isin(",
        COVERAGE,
    ),
    Fault(
        "a search that is left loses the records that are still growing",
        "lftj/search/regions/pieces.py",
        "if cursor.stream and cursor.recording:",
        "if cursor.stream and cursor.recording > 1:",
        COVERAGE,
    ),
    Fault(
        "a gap ends with a key that is there",
        "lftj/search/machine/gap.py",
        "return greatest + 1 if found else",
        "return greatest if found else",
        COVERAGE,
    ),
    Fault(
        "what is left of a record that is cut begins too late",
        "maintenance/strategies/trace/cut_records.py",
        "low = cuts[1, match] + 1",
        "low = cuts[1, match] + 2",
        COVERAGE,
    ),
    Fault(
        "a lost witness is sought after where it was alone",
        "maintenance/strategies/trace/witnessed_trace.py",
        "before = after[after[:, 2 + self.tail] > KEY_MIN]",
        "before = after[after[:, 2 + self.tail] < KEY_MIN]",
        ("maintenance/strategies/test_witnessed_trace.py",),
    ),
    Fault(
        "a record that ends before one of another region is a copy",
        "maintenance/strategies/trace/dead_records.py",
        "if same and keys[3, place] <= top:",
        "if keys[3, place] <= top:",
        COVERAGE,
    ),
    Fault(
        "a step that is dropped drops the records it found dead",
        "maintenance/strategies/trace/body_trace.py",
        "    def _drop_own(self) -> None:\n        self._settled = None",
        "    def _drop_own(self) -> None:\n        self._keep_own()",
        COVERAGE,
    ),
    Fault(
        "an insertion of what is there is a change",
        "lftj/storage/net_weights.py",
        "if (held[-1, row] > 0) != (weights[row] > 0):",
        "if held[-1, row] > 0 or weights[row] > 0:",
        WORKSPACE,
    ),
    Fault(
        "of what a transaction stages the last one counts",
        "maintenance/changes/write_buffer.py",
        "self._batches.append((np.array(columns), np.array(weights)))",
        "self._batches[:] = [(np.array(columns), np.array(weights))]",
        WORKSPACE,
    ),
    Fault(
        "infinities that go are counted on",
        "maintenance/groups/sums.py",
        "n_special += _n_any(specials) - _n_any(self._specials_of(rows.slots))",
        "n_special += _n_any(specials)",
        ("maintenance/groups/test_group_sums.py",),
    ),
    Fault(
        "rows are taken off a table in the order they came",
        "lftj/storage/row_table.py",
        "for number in range(n_rows[0] - 1, n_left - 1, -1):",
        "for number in range(n_left, n_rows[0]):",
        ("storage/test_row_table.py",),
    ),
    Fault(
        "heads keep what they staged for a transaction that failed",
        "maintenance/workspace/commit.py",
        "        for head in self.stepped:\n            head.drop()",
        "        for head in self.stepped:\n            head.keep()",
        WORKSPACE,
    ),
    Fault(
        "a head that reads a head does not hear of its changes",
        "maintenance/heads/stratum.py",
        "                version = change.enter(head.name, changed[head.name])\n",
        "                version = change.new[head.name].advance(columns, weights)\n",
        WORKSPACE,
    ),
    # -- rules: strata, lowering, values, sums ----------------------------------------------------
    Fault(
        "the row that is the bar itself is not among the best",
        "lftj/language/top_rows.py",
        '("kth_largest", ">=")',
        '("kth_largest", ">")',
        ("language/test_top.py",),
    ),
    Fault(
        "a relation is complete before all of its rules",
        "lftj/language/strata.py",
        "complete.update(dict.fromkeys(component, max(levels)))",
        "complete.update(dict.fromkeys(component, min(levels)))",
        ("language/test_strata.py",),
    ),
    Fault(
        "what is subtracted in a comparison is added",
        "lftj/planning/lowering.py",
        "return left.name, sign * right.value",
        "return left.name, right.value",
        ("evaluation/test_rule_cases.py",),
    ),
    Fault(
        "a comparison that is turned round loses its equality",
        "lftj/values/operators.py",
        '"<=": ">=", ">": "<"',
        '"<=": ">", ">": "<"',
        ("evaluation/test_rule_cases.py",),
    ),
    Fault(
        "a sum is rounded down from half",
        "lftj/aggregates/superaccumulator.py",
        "if above_half or (significand & 1):",
        "if above_half:",
        ("aggregates/test_superaccumulator.py",),
    ),
    Fault(
        "days have a thousandth of their length",
        "lftj/values/comparisons.py",
        "_NANOSECONDS_PER_DAY = 86_400 * 10**9",
        "_NANOSECONDS_PER_DAY = 86_400 * 10**6",
        ("values/test_comparisons.py",),
    ),
    # -- NULLs that are kept -----------------------------------------------------------------------
    Fault(
        "NULL joins NULL",
        "lftj/language/body_checker.py",
        "read = {name for name, count in Counter(stands).items() if count > 1}.union(self._aggregated)",
        "read = {name for name, count in Counter(stands).items() if count > 2}.union(self._aggregated)",
        ("evaluation/test_nulls.py",),
    ),
    Fault(
        "behind <=> NULL is left out",
        "lftj/language/body_checker.py",
        "if not (groups or variable.null_safe)]",
        "if not groups]",
        ("evaluation/test_null_values.py",),
    ),
    Fault(
        "NULLs of an order stand on the other side",
        "lftj/aggregates/window_frames.py",
        "if not type_.nullable or nulls_first != descending:",
        "if not type_.nullable or nulls_first == descending:",
        ("evaluation/test_windows.py",),
    ),
    Fault(
        "too few rows are read around a changed one",
        "maintenance/groups/windows.py",
        "read_from = hood.away(kept[0], reach.back, backwards=True)",
        "read_from = kept[0]",
        ("evaluation/test_windows_kept.py",),
    ),
    Fault(
        "of the first rows those alike to the last are left out",
        "maintenance/groups/first_rows.py",
        "kept = is_before(rows[:n_sorted], last_row, or_equal=True)",
        "kept = is_before(rows[:n_sorted], last_row)",
        ("evaluation/test_windows.py",),
    ),
    Fault(
        "a walk ends where it meets the next mark",
        "maintenance/groups/window_walks.py",
        "if marked.end != self.marks.states[self.to]:",
        "if False:",
        ("evaluation/test_windows_kept.py",),
    ),
    Fault(
        "a walk leaves out rows whose frames end before them",
        "maintenance/groups/window_walks.py",
        "if self.changes and late is not None:",
        "if False:",
        ("evaluation/test_windows_kept.py",),
    ),
    Fault(
        "windows of whole partitions stay when their last state changes",
        "maintenance/groups/windows.py",
        "if reach.total and walk.found.end != walk.marks.end:",
        "if False:",
        ("evaluation/test_windows_kept.py",),
    ),
    Fault(
        "marks stay where partitions become small",
        "maintenance/groups/windows.py",
        "if self._marks_of(change.touched[number]) is not None:",
        "if False:",
        ("evaluation/test_windows_kept.py",),
    ),
    Fault(
        "what is before the rows of a walk counts for nothing in extremes",
        "lftj/aggregates/windows.py",
        "return np.where(taken, before, found), there | was_there",
        "return found, there",
        ("evaluation/test_windows_kept.py",),
    ),
    Fault(
        "NULL is not null",
        "lftj/planning/lowering.py",
        'self.conditions.append(JoinCondition(name, ">=", None, NULL_CODE + 1, label=label))',
        'self.conditions.append(JoinCondition(name, ">=", None, NULL_CODE, label=label))',
        ("evaluation/test_nulls.py",),
    ),
    Fault(
        "a folder forgets that a relation keeps NULLs when another process tells what was loaded",
        "maintenance/workspace/recovery.py",
        '"keep" if loaded.keeps_null else "refuse"',
        '"refuse"',
        ("maintenance/workspace/test_nulls_kept.py",),
    ),
    Fault(
        "a change may be NULL where a column is declared NOT NULL and no rule reads it",
        "maintenance/changes/changes.py",
        "number not in read and not column.required",
        "number not in read",
        ("database/test_not_null.py",),
    ),
    Fault(
        "a folder forgets which columns are declared NOT NULL",
        "maintenance/workspace/entries.py",
        "schema.as_declared(relation.to_table())",
        "relation.to_table()",
        ("database/test_not_null.py",),
    ),
    Fault(
        "a rule that comes after a NULL was staged reads it",
        "maintenance/changes/write_buffer.py",
        "version.read_columns - self.read",
        "()",
        ("maintenance/workspace/test_wide_kept.py",),
    ),
    Fault(
        "NULLs of a variable that is cut are spread",
        "spark_bridge/placing/value_hash.py",
        "np.full(len(column), _OF_NULL)",
        "np.arange(len(column), dtype=np.uint64)",
        CELLS,
    ),
    Fault(
        "a cell counts where an aggregate of the rule reads NULL",
        "spark_bridge/placing/head_plan.py",
        "for name in argument_names(call)}",
        "for name in argument_names(call)} - {*self.keys}",
        CELLS,
    ),
    # -- bags ---------------------------------------------------------------------------------------
    Fault(
        "a rule counts the rows of a bag, not their copies",
        "lftj/language/hidden_columns.py",
        "(*literal.terms, *hidden)",
        "(*literal.terms, literal.terms[0])",
        BAGS,
    ),
    Fault(
        "more copies go than a bag has",
        "lftj/storage/bags.py",
        "after = np.maximum(before + weights, 0)",
        "after = np.maximum(before + weights, np.minimum(before - 1, 0))",
        BAGS,
    ),
    Fault(
        "of a batch, a transaction finds the copies that the first one found",
        "lftj/storage/bags.py",
        "before = np.where(starts, there, np.roll(after, 1))",
        "before = np.array(there, np.int64)",
        BAGS,
    ),
    Fault(
        "a bag comes back from a folder as a set",
        "maintenance/workspace/entries.py",
        "schema.keeps_null, schema.bag)",
        "schema.keeps_null)",
        BAGS,
    ),
    Fault(
        "copies that nobody has count below none",
        "lftj/aggregates/copies.py",
        "np.maximum(rows[head.copies], 0)",
        "rows[head.copies]",
        BAG_HEADS,
    ),
    Fault(
        "what reads a head that is a bag takes one copy",
        "lftj/language/checker.py",
        "            return self._first_heads[name].bag\n",
        "            return False\n",
        BAG_HEADS,
    ),
    Fault(
        "a bag that is counted has a copy of each row",
        "lftj/evaluation/evaluation.py",
        "return int(self._counts(name)[1].sum())",
        "return len(self._counts(name)[1])",
        BAG_HEADS,
    ),
    Fault(
        "through a batch each copy of a bag comes at once",
        "maintenance/heads/head.py",
        "np.repeat(times, counts), signs))",
        "np.repeat(times, counts)[::-1].copy(), signs))",
        BAG_HEADS,
    ),
    # -- workspaces in folders -----------------------------------------------------------------------
    Fault(
        "a folder of an older format stays one when it is changed",
        "maintenance/durable/store.py",
        "manifest = replace(manifest, format=FORMAT, end=end)",
        "manifest = replace(manifest, end=end)",
        ("maintenance/workspace/test_kept_folders.py",),
    ),
    Fault(
        "a commit is told before it is on disk",
        "maintenance/durable/store.py",
        '        if self.durability == "commit":\n            self._journal.wait(number)\n',
        '        if self.durability != "commit":\n            self._journal.wait(number)\n',
        ("maintenance/workspace/test_kept_disks.py",),
    ),
    Fault(
        "a tail is cut off though a later record had known it on disk",
        "maintenance/durable/records.py",
        "        if known > at and not damage:\n",
        "        if known < at and not damage:\n",
        ("maintenance/durable/test_records.py",),
    ),
    Fault(
        "closing does not say where the journal ended",
        "maintenance/durable/store.py",
        "end = None if ended.number == manifest.number else ended",
        "end = None",
        ("maintenance/durable/test_damage.py",),
    ),
    Fault(
        "what is behind the last whole change is deleted",
        "maintenance/durable/whole_files.py",
        "            self.aside.insert(0, (path.name, last.end))\n",
        "            pass\n",
        ("maintenance/durable/test_damage.py",),
    ),
    Fault(
        "an image is written of changes that are not on disk",
        "maintenance/workspace/folder.py",
        "            store.sync()",
        "            pass",
        ("maintenance/durable/test_damage.py",),
    ),
    Fault(
        "what came since a load is taken for loaded",
        "maintenance/workspace/past_loads.py",
        "back.apply(name, inverse(",
        "back.apply(name, (lambda table, label: table.slice(0, 0))(",
        ("maintenance/workspace/test_readers.py",),
    ),
    Fault(
        "a record that follows another one by its number is taken",
        "maintenance/durable/records.py",
        "if number is not None and (record.number, before) != (number, chain):",
        "if number is not None and record.number != number:",
        ("maintenance/durable/test_records.py",),
    ),
    # -- files -------------------------------------------------------------------------------------
    Fault(
        "a quoted field that spans blocks is taken for an open one",
        "lftj/files/csv_text.py",
        "self._quoted ^= bool(len(places) % 2)",
        "self._quoted = bool(len(places) % 2)",
        ("files/test_csv_files.py",),
    ),
    Fault(
        "what follows a closing quote may be anything",
        "lftj/files/csv_text.py",
        "return bool(border[codes[opening - 1]].all() and border[codes[closing + 1]].all())",
        "return bool(border[codes[opening - 1]].all())",
        ("files/test_csv_files.py",),
    ),
    # -- Spark: cells, state --------------------------------------------------------------------------
    Fault(
        "cells of a grid get numbers of other cells",
        "spark_bridge/placing/grids.py",
        "cells = [cell * share + part for cell in cells for part in choices]",
        "cells = [cell + part for cell in cells for part in choices]",
        CELLS,
    ),
    Fault(
        "all axes are cut alike",
        "spark_bridge/placing/value_hash.py",
        "np.uint64(zlib.crc32(axis.encode()))",
        "np.uint64(0)",
        CELLS,
    ),
    Fault(
        "a row's hash does not depend on the order of its values",
        "spark_bridge/placing/value_hash.py",
        "combined = mixed(combined) ^ column",
        "combined = combined ^ column",
        CELLS,
    ),
    Fault(
        "cleaning takes what a running batch has written",
        "spark_bridge/state/store.py",
        "if _version_of(token) > newest:",
        "if _version_of(token) > newest + 1:",
        STATE,
    ),
    Fault(
        "of commits at once more than one succeeds",
        "spark_bridge/state/store.py",
        "if not self._path.name_at_last(temporary, name):",
        "if self._path.name_at_last(temporary, name) is None:",
        STATE,
    ),
    Fault(
        "a file is closed before it is on disk",
        "maintenance/store/new_file.py",
        "            self._file.sync()\n",
        "            self._file.truncate(self.nbytes)\n",
        ("maintenance/store/test_new_file.py", "spark_bridge/test_state_crashes.py"),
    ),
    # What broke on a cluster before, one after the other.
    Fault(
        "packets of a task are sent together however large they are",
        "spark_bridge/placing/packets.py",
        "full = self.rest() if self._bytes + size > MOST_BYTES else []",
        "full = self.rest() if self._bytes + size > 1 << 60 else []",
        ("spark_bridge/test_bounded_placing.py",),
    ),
    Fault(
        "relations of which nothing is known are empty",
        "spark_bridge/placing/grids.py",
        "rows={name: rows + UNSURE for name, rows in sample.rows.items()}",
        "rows=sample.rows",
        ("spark_bridge/test_replanning.py",),
    ),
    Fault(
        "a task reads the states of all partitions",
        "spark_bridge/state/state_index.py",
        "TOGETHER = 8",
        "TOGETHER = 1 << 20",
        ("spark_bridge/test_state_index.py",),
    ),
    Fault(
        "a worker goes on with the engine of a try that was not committed",
        "spark_bridge/stages/worker.py",
        "if cached is not None and cached.state == steps[-1]:",
        "if cached is not None:",
        ("spark_bridge/test_stages_oracle.py",),
    ),
    Fault(
        "a worker keeps engines without a limit",
        "spark_bridge/state/engine_cache.py",
        "while total > most_bytes:",
        "while total > 1 << 60:",
        ("spark_bridge/test_state_index.py",),
    ),
    Fault(
        "all states of a driver take turns with each other",
        "spark_bridge/stages/turns.py",
        "name = os.path.realpath(path) if os.path.isabs(path) else path",
        'name = ""',
        ("spark_bridge/test_turns.py",),
    ),
    Fault(
        "a version is committed before the names of its files are on disk",
        "spark_bridge/state/store.py",
        "        self._sync_names(manifest)\n",
        "",
        ("spark_bridge/test_state_crashes.py",),
    ),
    # -- thresholds -----------------------------------------------------------------------------------
    Fault(
        "a quantile from above begins one value too early",
        "lftj/aggregates/quantiles.py",
        "return totals - np.array(reached, np.int64)",
        "return totals - np.array(reached, np.int64) - 1",
        ("maintenance/groups/test_quantiles.py", "evaluation/test_aggregates.py"),
    ),
    Fault(
        "the search for a sum passes the record that reaches it",
        "indices/scan_climb.py",
        "while slot < leaves.lengths[node] and total + leaves.values[node, slot] <= most:",
        "while slot < leaves.lengths[node] and total + leaves.values[node, slot] < most:",
        ("maintenance/groups/test_quantiles.py",),
    ),
    Fault(
        "ranges of multiples are rounded outwards",
        "maintenance/strategies/range_sums.py",
        "lows[row, last] = -((most - a * key) // b) if has_most else KEY_MIN",
        "lows[row, last] = (a * key - most) // b if has_most else KEY_MIN",
        ("maintenance/strategies/test_range_sums.py",),
    ),
    Fault(
        "groups of one side that are gone go on",
        "maintenance/strategies/range_sums.py",
        "            if not members[member]:\n",
        "            if members[member] is None:\n",
        ("maintenance/strategies/test_range_sums.py",),
    ),
    # -- rewriting: heads for some keys ----------------------------------------------------
    Fault(
        "the keys that a head is evaluated for are never NULL",
        "lftj/rewriting/key_relations.py",
        "replace(of[column].type, nullable=True)",
        "replace(of[column].type, nullable=False)",
        DEMAND,
    ),
    Fault(
        "windows are evaluated for some rows of a partition",
        "lftj/rewriting/bound_reads.py",
        "            names &= {one.name for one in window.per}\n",
        "            names |= {one.name for one in window.per}\n",
        DEMAND,
    ),
    Fault(
        "a value of a function is a key, too",
        "lftj/rewriting/bound_reads.py",
        "terms = self.atom.terms[:-1] if self.atom.functional else self.atom.terms",
        "terms = self.atom.terms",
        DEMAND,
    ),
    Fault(
        "the readers of a head that goes over ends of ways are those as written",
        "lftj/rewriting/demand.py",
        "in self._by_ends.get(name) or self._program.rules_of(name)",
        "in self._program.rules_of(name)",
        DEMAND,
    ),
    Fault(
        "a right-linear rule may read a column that it passes on",
        "lftj/rewriting/right_linear.py",
        "and head.variables.count(name) == read.count(Variable(name)) == 1",
        "and head.variables.count(name) == 1",
        DEMAND,
    ),
    Fault(
        "literals of any type are keys",
        "lftj/rewriting/demand.py",
        "isinstance(term, Constant) and self._domains.of(literal_type(term.value)) is column.type.domain",
        "isinstance(term, Constant)",
        DEMAND,
    ),
    Fault(
        "what is kept for keys is chosen anew when a folder is opened",
        "maintenance/durable/definitions.py",
        "return Results(tuple(self.results), self.choices) if self.results else None",
        "return Results(tuple(self.results)) if self.results else None",
        RESULTS,
    ),
    Fault(
        "keys of another result are lost",
        "lftj/rewriting/wanted_heads.py",
        "made = with_demand(needed, results.names, catalog",
        "made = with_demand(needed, results.names[:1], catalog",
        RESULTS,
    ),
    Fault(
        "heads stay that only an uninstalled one needed",
        "maintenance/workspace/installing.py",
        "head.kept_for or head.name in gone",
        "head.name in gone",
        RESULTS,
    ),
    Fault(
        "heads that are kept for keys can be read",
        "maintenance/heads/stratum.py",
        "self.hidden = {head.name: _hidden(head) for head in named if head.kept_for}",
        "self.hidden = {head.name: _hidden(head) for head in named if not head.kept_for and head.component}",
        RESULTS,
    ),
    Fault(
        "NULL comes before the values of a list",
        "lftj/values/lists.py",
        "_KNOWN, _NULL, _END = 1, 2, 0",
        "_KNOWN, _NULL, _END = 2, 1, 0",
        LISTS,
    ),
    Fault(
        "a text within a list ends at its first byte 0",
        "lftj/values/lists.py",
        'b"\\x01", b"\\x01\\x02"), b"\\x00", b"\\x01\\x01")',
        'b"\\x01", b"\\x01\\x02"), b"\\x00", b"\\x00")',
        LISTS,
    ),
    Fault(
        "lists of any elements become one another",
        "lftj/values/exact_casts.py",
        "return converts(source.value_type, wanted.value_type)",
        "return True",
        LISTS,
    ),
    Fault(
        "a list has its NULLs in front",
        "lftj/aggregates/whole.py",
        "np.lexsort((codes == NULL_CODE, ",
        "np.lexsort((codes != NULL_CODE, ",
        LISTS,
    ),
    Fault(
        "a list leaves NULL out",
        "lftj/language/syntax.py",
        'self.arguments[1:] if self.function == "list" else self.arguments',
        "self.arguments",
        LISTS,
    ),
    Fault(
        "an element from the end of a list is the one before",
        "lftj/values/list_functions.py",
        "lengths + wanted)",
        "lengths + wanted - 1)",
        LISTS,
    ),
)

FUZZED = (
    Fault(
        "a stage's list has room for what all of its participants share, and no more",
        "lftj/search/machine/plan.py",
        "for i in (*before[:1], *covered)[:2])",
        "for i in (*before[:1], *covered))",
        (),
    ),
    Fault(
        "an atom of a recursion that nothing else touches holds wherever its relation has rows",
        "lftj/evaluation/recursive_body.py",
        "(atom.n_rows(self._relations[atom.relation]) > 0) == negated",
        "(self._relations[atom.relation].n_rows > 0) == negated",
        (),
    ),
    Fault(
        "the feed says that it has all that is shown, and has what is settled",
        "maintenance/workspace/commit_feed.py",
        "            self._take(upto)\n            if self._start is None or after",
        "            if self._start is None or after",
        (),
    ),
    Fault(
        "in a batch a branch that does nothing has the sums of another",
        "maintenance/changes/timed_change.py",
        "    sums = np.concatenate([[0], np.cumsum(weights)])  # before each item, and behind the last\n"
        "    later = sums[1:] + np.repeat(before - sums[offsets[:-1]], np.diff(offsets))\n",
        "    sums = np.cumsum(weights)\n"
        "    first = sums[offsets[:-1]] - weights[offsets[:-1]]\n"
        "    later = sums + np.repeat(before - first, np.diff(offsets))\n",
        (),
    ),
    Fault(
        "a folder that was closed opens though its journal is shorter now",
        "maintenance/durable/reading.py",
        "    if not problem and least > found.number:\n",
        "    if not problem and least > found.number + 1_000:\n",
        (),
    ),
    Fault(
        "opening a folder again takes one relation's changes of each transaction",
        "maintenance/workspace/recovery.py",
        "                self._transaction.apply(name, table)\n",
        "                self._transaction.apply(name, table)\n                break\n",
        (),
    ),
    Fault(
        "views are used where what they compute may not fit",
        "lftj/rewriting/guard.py",
        "    except _Unproven as error:\n        return str(error)\n",
        "    except _Unproven:\n        return None\n",
        (),
    ),
    Fault(
        "years are counted in 16 bits",
        "lftj/values/calendar.py",
        "return years + _CYCLE_YEARS * self.cycles",
        "return (years + _CYCLE_YEARS * self.cycles).astype(np.int16).astype(np.int64)",
        (),
    ),
    Fault(
        "a timestamp is taken for a date",
        "lftj/values/exact_casts.py",
        '    return before != "other" and (before == after or',
        '    if (before, after) == ("timestamp", "date"):\n        return True\n'
        '    return before != "other" and (before == after or',
        (),
    ),
    Fault(
        "a tuple is visible from its second assignment on",
        "lftj/storage/support.py",
        "crossing(rows, before, after, self.least)",
        "crossing(rows, before, after, self.least + 1)",
        (),
    ),
    Fault(
        "what comes to a negated atom brings rows",
        "maintenance/strategies/delta/term.py",
        "WeightedSearch(plan.search, plan.sign, ",
        "WeightedSearch(plan.search, 1, ",
        (),
    ),
    Fault(
        "merging runs keeps tuples whose weights cancel",
        "lftj/storage/runs.py",
        "        if its != 0:\n            weight += its\n",
        "        if True:\n            weight += its\n",
        (),
    ),
)
"""Faults that ``make fuzz`` has to find within ten minutes: of each class that others found, and more.

No tests are named: what they notice is another question.
"""
