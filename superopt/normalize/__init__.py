"""superopt/normalize"""
