"""superopt/verify"""
