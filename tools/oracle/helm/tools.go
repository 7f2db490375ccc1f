//go:build tools

// Package tools names the Helm that judges the chart.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
