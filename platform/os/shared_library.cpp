// The room begins empty.
