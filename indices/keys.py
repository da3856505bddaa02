"""The least and the largest key: all of int64."""

KEY_MIN = -(2**63)
KEY_MAX = 2**63 - 1
