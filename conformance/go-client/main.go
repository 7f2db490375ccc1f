// What Go's clients of Kubernetes are asked to do by the suite: one command per check, the namespace as its argument.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var commands = map[string]func(ctx context.Context, config *rest.Config, namespace string) error{
	"sdk":        useSdk,
	"client-go":  useClientGo,
	"controller": useControllerRuntime,
	"daemon":     judgeDaemon,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 || commands[args[0]] == nil {
		return fmt.Errorf("usage: go-client sdk|client-go|controller|daemon NAMESPACE")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, -1
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	return commands[args[0]](ctx, config, args[1])
}

// eventually asks until the answer is yes, and names what it waited for when that never comes.
func eventually(ctx context.Context, what string, ask func() (bool, error)) error {
	deadline := time.Now().Add(60 * time.Second)
	for {
		ok, err := ask()
		if ok && err == nil {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("%s: not in time (last error: %v)", what, err)
		}
		time.Sleep(25 * time.Millisecond)
	}
}
