"""The ops of `torch.ops.gatherum`, and their lowering by Inductor."""
