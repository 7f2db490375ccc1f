//go:build tools

// Package tools names the etcd server that backs the judge's API server.
package tools

import _ "go.etcd.io/etcd/server/v3"
