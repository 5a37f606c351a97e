"""superopt/partial"""
