"""Ciphers written a second time, from their specifications, as slow and plain as can be.

They share nothing with the C under ciphers/ but the tables that the specifications print (and
where a table has a rule, they make it by the rule). They are judges for ciphers that have few or
no published vectors; see the manifests.
"""
