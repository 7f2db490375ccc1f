package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/agent-sandbox/clients/go/sandbox"
)

// judgeDaemon works with commands and files over both protocols and prints `ok NAME` or `failed NAME: why` for each thing.
func judgeDaemon(ctx context.Context, config *rest.Config, namespace string) error {
	failures := 0
	report := func(name string, err error) {
		if err == nil {
			fmt.Println("ok", name)
			return
		}
		failures++
		fmt.Printf("failed %s: %v\n", name, err)
	}
	report("Go, sandboxd: opened and given up", withSandbox(ctx, sandbox.Options{
		WarmPoolName: "judge-sandboxd", Namespace: namespace, RestConfig: config, Quiet: true,
		Runtime: sandbox.RuntimeSandboxd,
	}, func(box *sandbox.Sandbox) error {
		work(ctx, "Go, sandboxd", "judge/go.bin", box, report)
		report("Go, sandboxd: a file is deleted", deleted(ctx, box))
		return nil
	}))
	port, err := freePort()
	if err != nil {
		return err
	}
	report("Go, legacy: opened and given up", withSandbox(ctx, sandbox.Options{
		WarmPoolName: "judge-legacy", Namespace: namespace, RestConfig: config, Quiet: true,
		APIURL: fmt.Sprintf("http://127.0.0.1:%d", port),
	}, func(box *sandbox.Sandbox) error {
		// The address is fixed before there is a pod, so a tunnel of our own leads from it.
		stop, err := forward(namespace, box.PodName(), port)
		if err != nil {
			return err
		}
		defer stop()
		work(ctx, "Go, legacy", "go.bin", box, report)
		return nil
	}))
	if failures > 0 {
		return fmt.Errorf("%d of them failed", failures)
	}
	return nil
}

func withSandbox(ctx context.Context, options sandbox.Options, use func(*sandbox.Sandbox) error) error {
	box, err := sandbox.New(ctx, options)
	if err != nil {
		return err
	}
	if err := box.Open(ctx); err != nil {
		return err
	}
	if err := use(box); err != nil {
		_ = box.Close(ctx)
		return err
	}
	return box.Close(ctx)
}

func work(ctx context.Context, label, path string, box *sandbox.Sandbox, report func(string, error)) {
	report(label+": a command, its output and exit code", func() error {
		result, err := box.Run(ctx, "sh -c 'echo out; echo err >&2; exit 3'")
		if err != nil {
			return err
		}
		if result.Stdout != "out\n" || result.Stderr != "err\n" || result.ExitCode != 3 {
			return fmt.Errorf("%+v", *result)
		}
		return nil
	}())
	report(label+": a megabyte of output", func() error {
		result, err := box.Run(ctx, `sh -c 'head -c 1000000 /dev/zero | tr "\0" x'`)
		if err != nil {
			return err
		}
		if len(result.Stdout) != 1000000 {
			return fmt.Errorf("%d bytes", len(result.Stdout))
		}
		return nil
	}())
	report(label+": files", files(ctx, box, path))
	report(label+": twenty commands at once", func() error {
		var wait sync.WaitGroup
		failed := make(chan error, 20)
		for number := range 20 {
			wait.Go(func() {
				result, err := box.Run(ctx, fmt.Sprintf("echo %d", number))
				if err != nil {
					failed <- err
				} else if result.Stdout != fmt.Sprintf("%d\n", number) {
					failed <- fmt.Errorf("%q for %d", result.Stdout, number)
				}
			})
		}
		wait.Wait()
		close(failed)
		return <-failed
	}())
}

func files(ctx context.Context, box *sandbox.Sandbox, path string) error {
	data := bytes.Repeat([]byte{0, 1, 2, 253, 254, 255}, 40_000)
	if err := box.Write(ctx, path, data); err != nil {
		return err
	}
	read, err := box.Read(ctx, path)
	if err != nil {
		return err
	}
	if !bytes.Equal(read, data) {
		return fmt.Errorf("%d bytes came back, not the %d that were sent", len(read), len(data))
	}
	for name, wanted := range map[string]bool{path: true, "nowhere": false} {
		if is, err := box.Exists(ctx, name); err != nil || is != wanted {
			return fmt.Errorf("exists %s: %v %v", name, is, err)
		}
	}
	directory, name := ".", path
	if cut := strings.LastIndex(path, "/"); cut > 0 {
		directory, name = path[:cut], path[cut+1:]
	}
	entries, err := box.List(ctx, directory)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name == name && entry.Size == int64(len(data)) {
			return nil
		}
	}
	return fmt.Errorf("%s is not in the listing %+v", name, entries)
}

func deleted(ctx context.Context, box *sandbox.Sandbox) error {
	if err := box.Delete(ctx, "judge/go.bin", false); err != nil {
		return err
	}
	if is, err := box.Exists(ctx, "judge/go.bin"); err != nil || is {
		return fmt.Errorf("exists after it was deleted: %v %v", is, err)
	}
	return nil
}

// forward opens a tunnel of kubectl from a local port to the pod's port 8888.
func forward(namespace, pod string, port int) (func(), error) {
	tunnel := exec.Command("kubectl", "-n", namespace, "port-forward", "pod/"+pod, fmt.Sprintf("%d:8888", port))
	out, err := tunnel.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := tunnel.Start(); err != nil {
		return nil, err
	}
	stop := func() {
		_ = tunnel.Process.Kill()
		_ = tunnel.Wait()
	}
	if _, err := out.Read(make([]byte, 256)); err != nil {
		stop()
		return nil, fmt.Errorf("kubectl port-forward: %w", err)
	}
	return stop, nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
