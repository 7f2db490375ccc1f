//go:build tools

// Package tools names upstream's controller, the judge of the controllers.
package tools

import _ "sigs.k8s.io/agent-sandbox/cmd/agent-sandbox-controller"
