"""The playground: one web page with an editor that completes, built once with npm and served under /playground."""
