//go:build tools

// Package tools names upstream's controller, the judge of the controllers, and its runtime, the judge of the SDK.
package tools

import (
	_ "sigs.k8s.io/agent-sandbox/cmd/agent-sandbox-controller"
	_ "sigs.k8s.io/agent-sandbox/packages/sandboxd/cmd/sandboxd"
)
