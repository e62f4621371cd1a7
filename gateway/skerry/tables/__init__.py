"""Tables that queries join streams with: files beside the gateway, read again when they change."""
