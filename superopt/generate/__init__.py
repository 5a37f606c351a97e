"""superopt/generate"""
