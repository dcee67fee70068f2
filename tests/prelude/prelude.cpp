// Nothing but the target whose precompiled header the tests share.
