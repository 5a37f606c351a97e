"""One forward rebuild of one graph: values folded, identities applied, equal nodes merged, bodies visited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from superopt.ir.graph import Attribute, Constant, Graph, Label, Node, Value, make_node, make_parameter, replace_inputs
from superopt.ir.tensor import Tensor
from superopt.normalize import (
    arithmetic,
    batchnorm,
    broadcasting,
    casting,
    counting,
    infinite,
    layout,
    picking,
    selection,
    sharing,
    telling,
)
from superopt.normalize.builder import Builder, presence, substitute, with_instance
from superopt.normalize.captures import prune
from superopt.normalize.choices import Choice, Choices, choose
from superopt.normalize.duplicates import COMMON, Duplicates, key_of, may_merge
from superopt.normalize.folding import fold
from superopt.normalize.inlining import KNOWN, branch_of, names_in, relabel, result_names
from superopt.normalize.journal import place_of
from superopt.normalize.purity import CONTROL_FLOW
from superopt.normalize.retyping import better, retyped, typed, types_of_branches
from superopt.normalize.rule import Replacement, Rule
from superopt.normalize.scope import Context, Scope, count_uses

RULES = (
    *selection.RULES, *arithmetic.RULES, *casting.RULES, *picking.RULES, *layout.RULES, *counting.RULES,
    *infinite.RULES, *batchnorm.RULES, *telling.RULES, *broadcasting.RULES,
)  # fmt: skip
_BY_OPERATOR: dict[str, tuple[Rule, ...]] = {
    op: tuple(rule for rule in RULES if op in rule.ops) for op in {op for rule in RULES for op in rule.ops}
}

Known = Mapping[Value, Tensor]
Visit = Callable[[Graph, Known, Known, str], Graph]
"""One round over a body: the body, the constants it captures, what else is foreseen of its captures, where it is."""


class Rewriter:
    def __init__(self, context: Context, graph: Graph, known: Known, foreseen: Known, where: str, visit: Visit) -> None:
        self.context, self.graph, self.known, self.where, self.visit = context, graph, known, where, visit
        self.foreseen = foreseen
        self.uses = count_uses(graph)
        self.builder = Builder(graph)
        self.scope = Scope(context, graph, known, Counter({v: n for v, n in self.uses.items() if v.node is None}))
        """Of the new graph. Its uses count those of a replaced node too, so they are never too low."""
        self.values: dict[Value, Value] = {}
        self.moved: dict[Node, Node] = {}
        self.outputs = set(graph.outputs)
        self.claimed: set[Value] = set()
        """New values that are results of the graph: no two results may become one value."""
        self.duplicates = Duplicates()
        self.choices = Choices()
        self.node_names = {label.name for label in graph.labels.values()}

    def run(self) -> Graph:
        graph = self.graph
        scope = Scope(self.context, graph, self.known, self.uses)
        self.choices = choose(graph, scope, self.foreseen)
        folded = fold(graph, scope, self.where)
        self._add_constants(folded.tensors)
        for node in graph.nodes:
            if node not in folded.nodes:
                self._visit(node)
        return replace(
            graph,
            outputs=tuple(self.values.get(v, v) for v in graph.outputs),
            nodes=tuple(self.builder.nodes),
            labels=self.builder.labels,
            constants=self.builder.constants,
        )

    def _add_constants(self, tensors: Mapping[Value, Tensor]) -> None:
        """A folded value becomes a constant of its name; equal ones become one constant."""
        made: dict[str, Value] = {}
        for value, tensor in tensors.items():
            if tensor.digest not in made:
                made[tensor.digest] = self._add_constant(Constant(tensor), self._name(value))
            self._replace(value, made[tensor.digest])

    def _add_constant(self, constant: Constant, name: str) -> Value:
        """Before IR version 4 an initializer had to be an input as well, and inputs are not ours to add."""
        if self.context.model.ir_version >= 4:
            self.builder.constants[constant] = name
            return Value(constant)
        node = make_node("Constant", (), {"value": constant.tensor}, (constant.tensor.type,))
        return Value(self.builder.emit(node, Label(name, (name,))))

    def _name(self, value: Value) -> str:
        assert value.node is not None
        outputs = self.graph.labels.get(value.node, Label()).outputs
        name = outputs[value.index] if value.index < len(outputs) else ""
        return name or self.context.fresh(f"{value.node.op.lower()}_folded")

    def _visit(self, old: Node) -> None:
        label = self.graph.labels.get(old, Label())
        place = place_of(old, label, self.where)
        choice = self.choices.taken.get(old)
        if choice is not None and self._inline(old, label, place, choice):
            return
        node = self._on_new_operands(old, label, place)
        if not self.scope.is_pure(node):
            self._emit(old, node, label)
            return
        simpler = self._simplified(old, node, label, place)
        if simpler is not None:
            self._merge_or_emit(old, *simpler, place)

    def _on_new_operands(self, old: Node, label: Label, place: str) -> Node:
        inputs = tuple(None if v is None else self.values.get(v, v) for v in old.inputs)
        captured = tuple(self.values.get(v, v) for v in old.captured)
        if old.bodies:
            return self._with_bodies(old, inputs, captured, place)
        return retyped(old, replace_inputs(old, inputs, captured), presence(old, label), self.scope)

    def _with_bodies(
        self, old: Node, inputs: tuple[Value | None, ...], captured: tuple[Value, ...], place: str
    ) -> Node:
        attributes: dict[str, Attribute] = dict(old.attributes)
        if old.op in CONTROL_FLOW and self.context.purity.is_known(old):
            for name, value in old.attributes:
                if isinstance(value, Graph):
                    attributes[name] = self._body(value, old, captured, f"{place}/{name}/")
        if captured == old.captured and all(attributes[name] is value for name, value in old.attributes):
            return replace_inputs(old, inputs, captured)
        attributes, captured = prune(attributes, captured)
        return make_node(
            old.op,
            inputs,
            attributes,
            types_of_branches(old, attributes) if old.op == "If" else old.types,
            domain=old.domain,
            captured=captured,
            instance=old.instance,
        )

    def _body(self, body: Graph, old: Node, captured: tuple[Value, ...], where: str) -> Graph:
        """The body after a round, seen with all that is known now of what it captures."""
        captures = tuple(
            make_parameter(p.position, better(p.type, v.type), captured=True)
            for p, v in zip(body.captures, captured, strict=True)
        )
        pairs = zip(captures, captured, strict=True)
        known = {Value(p): tensor for p, v in pairs if (tensor := self.scope.tensor(v)) is not None}
        choices = zip(captures, old.captured, strict=True)
        foreseen = {Value(p): self.choices.tensors[v] for p, v in choices if v in self.choices.tensors}
        if captures == body.captures:
            return self.visit(body, known, foreseen, where)
        inside = Scope(self.context, body, known, Counter())
        moves = {Value(a): Value(b) for a, b in zip(body.captures, captures, strict=True)}
        seen, _ = substitute(body, moves, captures, lambda old, new, present: retyped(old, new, present, inside))
        visited = self.visit(seen, known, foreseen, where)
        return body if visited is seen else visited

    def _inline(self, old: Node, label: Label, place: str, choice: Choice) -> bool:
        """The nodes of the branch that is taken, in the place of the If; whether that was done."""
        branch = branch_of(old, choice.branch, self.context, self.node_names)
        if branch is None or not self.context.journal.permits(KNOWN, place):
            return False
        self.context.journal.record(KNOWN, place, f"{choice.branch}: {choice.why}")
        self.context.names.subtract(names_in(*(body for body in old.bodies if body is not branch)))
        moved = {Value(p): self.values.get(v, v) for p, v in zip(branch.captures, old.captured, strict=True)}
        for constant, name in branch.constants.items():
            moved[Value(constant)] = self._add_constant(constant, self._free(name))
        results = result_names(branch, label)
        for node in branch.nodes:
            inputs = tuple(None if v is None else moved.get(v, v) for v in node.inputs)
            captured = tuple(moved.get(v, v) for v in node.captured)
            inner = branch.labels.get(node, Label())
            new = retyped(node, replace_inputs(node, inputs, captured), presence(node, inner), self.scope)
            outputs = tuple(
                results.get(Value(node, i)) or (name and self._free(name)) for i, name in enumerate(inner.outputs)
            )
            new = self.builder.emit(new, relabel(inner, outputs, self.node_names, self.context))
            self.scope.uses.update(new.operands)
            moved.update(zip(node.outputs, new.outputs, strict=True))
        for i, (before, inside) in enumerate(zip(old.outputs, branch.outputs, strict=True)):
            after = moved.get(inside, inside)
            if before in self.outputs and (after.node is None or after in self.claimed):
                name = label.outputs[i] if i < len(label.outputs) else ""
                copy = make_node("Identity", (after,), (), (after.type,))
                self.scope.uses[after] += 1
                after = Value(self.builder.emit(copy, Label(self.context.fresh(f"{name}_copy"), (name,))))
            self._replace(before, after)
        return True

    def _free(self, name: str) -> str:
        """A name of a branch in the graph around it: its own, unless another graph has it too."""
        return name if self.context.names[name] <= 1 else self.context.fresh(name)

    def _simplified(self, old: Node, node: Node, label: Label, place: str) -> tuple[Node, Label] | None:
        """The node after all identities that fit; None when another value takes its place."""
        journal = self.context.journal
        changed = True
        while changed:
            changed = False
            for rule in _BY_OPERATOR.get(node.op, ()) if not node.domain else ():
                result = rule.apply(node, self.scope)
                if result is None or not journal.permits(rule.name, place):
                    continue
                if isinstance(result, Replacement):
                    if not self.context.budget.allows(result.growth):
                        continue
                    before = node
                    node, label = self._take(result, label)
                    journal.record(rule.name, place, self._become(before, node), result.proof)
                    changed = True
                    break
                if self._may_stand_for(result, old):
                    journal.record(rule.name, place, f"{node.kind} is its operand {self.builder.describe(result)}")
                    self._replace(old.outputs[0], result)
                    return None
        return node, label

    def _become(self, before: Node, after: Node) -> str:
        first = after.inputs[0]
        return f"{before.kind} becomes {after.kind} of {'' if first is None else self.builder.describe(first)}"

    def _take(self, result: Replacement, label: Label) -> tuple[Node, Label]:
        """Account for a replacement. Its label: names of the value it defines, record of the node it is like."""
        self.context.budget.spent += result.growth
        base = label.outputs[0] if label.outputs else result.node.op.lower()
        made = {
            Value(constant): self._add_constant(constant, self.context.fresh(base + kind))
            for constant, kind in result.constants
        }
        for inner, kind in result.inner:
            name = self.context.fresh(base + kind)
            new = replace_inputs(inner, (v and made.get(v, v) for v in inner.inputs), inner.captured)
            self.scope.uses.update(new.operands)
            made[Value(inner)] = Value(self.builder.emit(new, Label(name, (name,))))
        node = replace_inputs(result.node, (v and made.get(v, v) for v in result.node.inputs), result.node.captured)
        node = typed(node, presence(node, label), self.scope)
        self.scope.uses.update(node.operands)
        if result.like is None:
            return node, Label(label.name, label.outputs)
        like = self.builder.labels.get(result.like, label)
        return node, Label(like.name, label.outputs, like.origin)

    def _may_stand_for(self, value: Value, old: Node) -> bool:
        """Whether a value may replace the first output; a result of the graph needs a node behind it, of its own."""
        if any(self.uses[v] for v in old.outputs[1:]):
            return False
        return old.outputs[0] not in self.outputs or (value.node is not None and value not in self.claimed)

    def _replace(self, old: Value, new: Value) -> None:
        self.values[old] = new
        self.scope.uses[new] += self.uses[old]
        if old in self.outputs:
            self.claimed.add(new)

    def _merge_or_emit(self, old: Node, node: Node, label: Label, place: str) -> None:
        if not may_merge(node, self.scope):
            self._emit(old, node, label)
            return
        key = key_of(node, presence(node, label))
        twin = self.duplicates.find(key, node)
        name = sharing.NAME if node.op == "Constant" else COMMON
        if twin is not None and self._may_merge_into(twin, old) and self.context.journal.permits(name, place):
            twin_place = place_of(twin, self.builder.labels[twin], self.where)
            self.context.journal.record(name, place, f"{node.kind} is the same as {twin_place}")
            for before, after in zip(old.outputs, twin.outputs, strict=True):
                self._replace(before, after)
            return
        self.duplicates.remember(key, self._emit(old, with_instance(node, 0), label))

    def _may_merge_into(self, twin: Node, old: Node) -> bool:
        pairs = zip(old.outputs, twin.outputs, strict=True)
        return not any(before in self.outputs and after in self.claimed for before, after in pairs)

    def _emit(self, old: Node, node: Node, label: Label) -> Node:
        new = self.builder.emit(node, label)
        self.moved[old] = new
        for before, after in zip(old.outputs, new.outputs, strict=True):
            self._replace(before, after)
        return new
