"""superopt/check"""
