"""Rules as text: read, with errors that point at their place, and written."""

from __future__ import annotations

import re
from typing import NoReturn

from superopt.errors import BadText
from superopt.ir.lexer import Reader, Token
from superopt.rewrite.expression import Expression, Listing, Text, names_in, parse_expression
from superopt.rewrite.formulas import holds_list, slip
from superopt.rewrite.rule import Block, Call, Given, Number, Operand, Proof, Rule, Step, Where

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")
_PROOF = re.compile(r"(unbounded|bounded \d+) (z3=[\w.]+(?:\+lemmas)?) digest=([0-9a-f]+)\Z")
_COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")


def parse_rules(text: str, source: str = "text") -> list[Rule]:
    rules: list[Rule] = []
    names: dict[str, int] = {}
    for block in _blocks(text, source):
        rule = _RuleReader(block, source).rule()
        if rule.name in names:
            _fail(f"the name {rule.name!r} is taken by the rule in line {names[rule.name]}", source, block[0])
        names[rule.name] = rule.line
        rules.append(rule)
    return rules


Line = tuple[int, str]


def _fail(message: str, source: str, line: Line, column: int = 1) -> NoReturn:
    raise BadText(message, source, line[0], column, line[1])


def _blocks(text: str, source: str) -> list[list[Line]]:
    """The lines of each rule; comments start with `#`."""
    blocks: list[list[Line]] = []
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip()
        if not line or line.lstrip().startswith("#"):
            continue
        if line.startswith("rule ") or line == "rule":
            blocks.append([(number, line)])
        elif not line.startswith(" "):
            _fail("expected `rule NAME`, or an indented line of the rule above", source, (number, line))
        elif not blocks:
            _fail("a line before the first rule", source, (number, line))
        else:
            blocks[-1].append((number, line))
    return blocks


class _RuleReader:
    def __init__(self, lines: list[Line], source: str) -> None:
        self.source, self.head, self.lines = source, lines[0], lines[1:]
        self.doc, self.origin = "", "hand"
        self.proof: Proof | None = None
        self.given: list[Given] = []
        self.where: list[Where] = []
        self.finite = False
        self.sides: tuple[list[Step], list[Step]] = ([], [])
        self.right = False

    def rule(self) -> Rule:
        name = self.head[1][4:].strip()
        if not _NAME.match(name):
            _fail(f"expected a name of small letters, digits and dashes, found {name!r}", self.source, self.head, 6)
        for line in self._joined():
            self._line(line)
        if not self.sides[0] or not self.right:
            _fail("a rule needs a pattern, `=>` and what takes its place", self.source, self.head)
        rule = Rule(
            name, self.doc, tuple(self.given), tuple(self.where), tuple(self.sides[0]), tuple(self.sides[1]),
            self.finite, self.origin, self.proof, self.source, self.head[0],
        )  # fmt: skip
        self._check_names(rule)
        return rule

    def _joined(self) -> list[Line]:
        """Lines with open brackets continue on the next."""
        joined: list[Line] = []
        depth = 0
        for number, line in self.lines:
            if depth > 0:
                first, text = joined[-1]
                joined[-1] = (first, f"{text} {line.strip()}")
            else:
                joined.append((number, line))
            if not re.match(r"\s+(doc|origin|proof)\s", line):
                depth = sum(joined[-1][1].count(c) for c in "([") - sum(joined[-1][1].count(c) for c in ")]")
        return joined

    def _line(self, line: Line) -> None:
        number, text = line
        word, _, rest = text.strip().partition(" ")
        if word == "doc":
            self.doc = f"{self.doc} {rest.strip()}".strip()
        elif word == "origin":
            self.origin = rest.strip()
        elif word == "proof":
            match = _PROOF.match(rest.strip())
            if match is None:
                _fail("expected `proof unbounded z3=VERSION digest=HEX`", self.source, line, text.index("proof") + 1)
            self.proof = Proof(*match.groups())
        elif text.strip() == "=>":
            if self.right:
                _fail("a second `=>`", self.source, line, text.index("=>") + 1)
            self.right = True
        else:
            self._statement(word, Reader(text, self.source, number))

    def _statement(self, word: str, r: Reader) -> None:
        if word == "given":
            r.next()
            while r.peek.kind != "end":
                self.given.append(_given(r))
        elif word == "where":
            r.next()
            self._condition(r)
            while r.take(","):
                self._condition(r)
        else:
            self.sides[self.right].append(_step(r))
        if r.peek.kind != "end":
            r.error(f"expected the end of the line, found {r.found()}")

    def _condition(self, r: Reader) -> None:
        if r.take("finite"):
            self.finite = True
        else:
            self.where.append(_where(r))

    def _check_names(self, rule: Rule) -> None:
        """Values are defined once on each side, before they are read; results are defined on both."""
        tensors = {g.name for g in rule.given}
        if len(tensors) < len(rule.given):
            _fail("an input is given twice", self.source, self.head)
        for side in (rule.left, rule.right):
            known = set(tensors)
            for step in side:
                for name in _reads(step.value):
                    if name not in known:
                        _fail(f"{name!r} is read before it is defined (in `{step}`)", self.source, self.head)
                for target in step.targets:
                    if target in known:
                        _fail(f"{target!r} is defined twice (in `{step}`)", self.source, self.head)
                    if target != "_":  # a result that nobody wants
                        known.add(target)
        if found := slip(rule):
            _fail(found, self.source, self.head)
        if not rule.results:
            _fail("the right side defines none of the pattern's results", self.source, self.head)
        read = {n for step in rule.left for n in _reads(step.value)}
        last = [t for step in rule.left for t in step.targets if t not in read and t != "_"]
        for target in last:
            if target not in rule.results:
                _fail(f"the right side does not define {target!r}", self.source, self.head)


def _reads(value: Operand) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Call):
        return [n for o in value.operands for n in _reads(o)]
    return []


def _given(r: Reader) -> Given:
    name = r.expect_kind("name", "the name of an input").text
    r.expect(":")
    if r.take("int"):
        return Given(name, "int")
    if r.take("real"):
        return Given(name, "real")
    kind = next((k for k in ("bool", "positive", "finite") if r.take(k)), "tensor")
    r.expect("[")
    dims: list[object] = []
    while not r.take("]"):
        if dims:
            r.expect(",")
        if r.take("..."):
            dims.append(Block(r.expect_kind("name", "the name of a block of dims").text))
        else:
            dims.append(parse_expression(r))
    return Given(name, kind, tuple(dims))  # pyright: ignore[reportArgumentType]


def parse_given(text: str, source: str = "text") -> tuple[Given, ...]:
    """Inputs with their shapes, as after the word `given`."""
    r = Reader(text, source)
    found: list[Given] = []
    while r.peek.kind != "end":
        found.append(_given(r))
    return tuple(found)


def parse_call(text: str, source: str = "text") -> Call:
    """One operator with its operands and attributes."""
    r = Reader(text, source)
    call = _call(r)
    if r.peek.kind != "end":
        r.error(f"expected the end, found {r.found()}")
    return call


def _where(r: Reader) -> Where:
    left = parse_expression(r)
    for comparison in _COMPARISONS:
        if r.take(comparison):
            return Where(left, comparison, parse_expression(r))
    return r.error(f"expected a comparison, found {r.found()}")


def _step(r: Reader) -> Step:
    targets = [r.expect_kind("name", "a result").text]
    while r.take(","):
        targets.append(r.expect_kind("name", "a result").text)
    r.expect("=")
    value = _operand(r)
    if isinstance(value, Number) or value is None:
        r.error("expected a call or the name of a value")
    return Step(tuple(targets), value)


def _operand(r: Reader) -> Operand:
    token = r.peek
    if token.kind == "name" and token.text not in ("sqrt", "pi"):
        if token.text == "_":
            r.next()
            return None
        if token.text[0].isupper() or _is_domain(r, token):
            return _call(r)
        r.next()
        if r.at("*") or r.at("/"):
            r.error("arithmetic on values is written with operators: Mul, Div", token)
        return token.text
    number = Number(parse_expression(r))
    is_list = isinstance(number.expression, Listing) or holds_list(number.expression)
    if is_list and _table_shape(number.expression) is None:
        r.error("a list of numbers holds numbers alone, or lists of one length", token)
    return number


def _table_shape(expression: Expression) -> tuple[int, ...] | None:
    """The sizes of a list of known numbers; None where it is no table."""
    if not isinstance(expression, Listing):
        return None if isinstance(expression, Text) or holds_list(expression) or names_in(expression) else ()
    parts = {_table_shape(item) for item in expression.items}
    inner = next(iter(parts)) if len(parts) == 1 else None
    return None if inner is None else (len(expression.items), *inner)


def _is_domain(r: Reader, token: Token) -> bool:
    return "." in token.text


def _call(r: Reader) -> Call:
    op, domain = r.expect_kind("name", "an operator").text, ""
    if r.take("::"):
        domain, op = op, r.expect_kind("name", "an operator").text
    r.expect("(")
    operands: list[Operand] = []
    arguments: list[tuple[str, object]] = []
    bundle: str | None = None
    first = True
    while not r.take(")"):
        if not first:
            r.expect(",")
        first = False
        if r.take("*"):
            bundle = r.expect_kind("name", "the name of a bundle").text
            continue
        token = r.peek
        operand = _operand(r)
        if isinstance(operand, str) and r.take("="):
            arguments.append((operand, parse_expression(r)))
        elif arguments or bundle:
            r.error("operands come before attributes", token)
        else:
            operands.append(operand)
    return Call(domain, op, tuple(operands), tuple(arguments), bundle)  # pyright: ignore[reportArgumentType]


def format_rule(rule: Rule) -> str:
    lines = [f"rule {rule.name}"]
    if rule.doc:
        lines.append(f"  doc     {rule.doc}")
    lines.append(f"  origin  {rule.origin}")
    if rule.proof is not None:
        lines.append(f"  proof   {rule.proof}")
    lines.append(f"  given   {'  '.join(map(str, rule.given))}")
    if conditions := rule.conditions:
        lines.append(f"  where   {conditions}")
    lines += [f"  {step}" for step in rule.left]
    lines.append("  =>")
    lines += [f"  {step}" for step in rule.right]
    return "\n".join(lines) + "\n"


def format_meaning(rule: Rule) -> str:
    """The text that a proof is about: everything but name, doc, origin and the proof itself."""
    return rule.meaning
