"""superopt/rewrite"""
