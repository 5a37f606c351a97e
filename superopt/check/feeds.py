"""One representative input set, for the clock."""

from __future__ import annotations

from superopt.check.cases import Source
from superopt.check.ladder import TIMING
from superopt.check.own import own_inputs
from superopt.check.reference import Request
from superopt.check.search import Search
from superopt.check.sizes import check_given
from superopt.ir.onnx import Model
from superopt.runtime.session import Session
from superopt.runtime.values import Value


def make_feeds(model: Model, session: Session, request: Request | None = None) -> dict[str, Value]:
    """The user's own arrays, or normal values of the sizes asked for; dims left open get what people deploy: batches
    of one, images of 224, sequences of 128, or the first other size that runs."""
    request = request or Request()
    source = Source(model, session, request.seed)
    check_given(source.declared, request.dims, request.shapes)
    if request.inputs is not None:
        return dict(own_inputs(request.inputs, session.inputs, session.overridable)[0])
    search = Search(
        source, lambda case: session.run(source.feeds(case)), request.dims, request.shapes, TIMING, request.limits
    )
    return source.feeds(search.first().case)
