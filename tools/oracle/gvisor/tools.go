//go:build tools

// Package tools names gVisor and its shim for containerd.
package tools

import (
	_ "gvisor.dev/gvisor/runsc"
	_ "gvisor.dev/gvisor/shim"
)
