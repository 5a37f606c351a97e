"""What a graph is: types, tensors, frozen graphs, their text form and the ONNX border."""
