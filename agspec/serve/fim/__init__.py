"""Inline completion over HTTP: five APIs that editors speak, one service behind them."""
