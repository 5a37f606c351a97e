"""superopt/ops"""
