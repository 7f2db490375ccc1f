package main

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/agent-sandbox/clients/go/sandbox"
)

// useSdk opens a sandbox from the pool, runs commands in it, writes and reads a file, and closes it.
func useSdk(ctx context.Context, config *rest.Config, namespace string) error {
	box, err := sandbox.New(ctx, sandbox.Options{
		WarmPoolName: "pool",
		Namespace:    namespace,
		RestConfig:   config,
		Quiet:        true,
	})
	if err != nil {
		return err
	}
	if err := box.Open(ctx); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	result, err := box.Run(ctx, `echo "$POD_NAME"; echo err >&2; exit 3`)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if err := box.Write(ctx, "note.txt", []byte("written through the tunnel")); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	content, err := box.Read(ctx, "note.txt")
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	isOwnPod := strings.TrimSpace(result.Stdout) == box.PodName()
	fmt.Printf("claim %s pod %s\n", box.ClaimName(), box.PodName())
	fmt.Printf("own pod %t|%s|%d|%s\n", isOwnPod, strings.TrimSpace(result.Stderr), result.ExitCode, content)
	return box.Close(ctx)
}
