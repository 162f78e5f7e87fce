"""The paths of the API, one module per noun."""
