//go:build tools

// Package tools names the program that gives Services their addresses.
package tools

import _ "k8s.io/kubernetes/cmd/kube-proxy"
