"""Published training steps against the engine's, and the fit of what chips reach."""
