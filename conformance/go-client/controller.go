package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	sandboxv1beta1 "sigs.k8s.io/agent-sandbox/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "conformance.corral.dev/notes"

var conflictBackoff = wait.Backoff{Steps: 50, Duration: 5 * time.Millisecond, Factor: 1.1, Jitter: 0.5}

func newSandbox(name string) *unstructured.Unstructured {
	container := map[string]any{"name": "main", "image": "example/one:1"}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "agents.x-k8s.io/v1beta1",
		"kind":       "Sandbox",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"podTemplate": map[string]any{"spec": map[string]any{"containers": []any{container}}}},
	}}
}

// notes keeps a ConfigMap beside every Sandbox, and lets a Sandbox go only after it.
type notes struct{ client.Client }

func (n *notes) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	box := &sandboxv1beta1.Sandbox{}
	if err := n.Get(ctx, request.NamespacedName, box); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: box.Name + "-note", Namespace: box.Namespace}}
	if !box.DeletionTimestamp.IsZero() {
		if err := client.IgnoreNotFound(n.Delete(ctx, note)); err != nil {
			return ctrl.Result{}, err
		}
		before := box.DeepCopy()
		controllerutil.RemoveFinalizer(box, finalizer)
		return ctrl.Result{}, client.IgnoreNotFound(n.Patch(ctx, box, client.MergeFrom(before)))
	}
	if controllerutil.AddFinalizer(box, finalizer) {
		return ctrl.Result{}, n.Update(ctx, box)
	}
	_, err := controllerutil.CreateOrUpdate(ctx, n.Client, note, func() error {
		note.Data = map[string]string{"image": box.Spec.PodTemplate.Spec.Containers[0].Image}
		return controllerutil.SetControllerReference(box, note, n.Scheme())
	})
	if err != nil || box.Status.ServiceFQDN == "noted" {
		return ctrl.Result{}, err
	}
	before := box.DeepCopy()
	box.Status.ServiceFQDN = "noted"
	return ctrl.Result{}, n.Status().Patch(ctx, box, client.MergeFrom(before))
}

// useControllerRuntime runs a manager with election, cache, owner watches and finalizers, and watches what it does.
func useControllerRuntime(ctx context.Context, config *rest.Config, namespace string) error {
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, sandboxv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		LeaderElection:          true,
		LeaderElectionID:        "notes",
		LeaderElectionNamespace: namespace,
	})
	if err != nil {
		return err
	}
	reconciler := &notes{manager.GetClient()}
	if err := ctrl.NewControllerManagedBy(manager).For(&sandboxv1beta1.Sandbox{}).Owns(&corev1.ConfigMap{}).Complete(reconciler); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	defer func() { stop(); <-ended }()
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	return followNotes(ctx, direct, namespace)
}

func followNotes(ctx context.Context, direct client.Client, namespace string) error {
	box := newSandbox("box")
	box.SetNamespace(namespace)
	if err := direct.Create(ctx, box); err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: namespace, Name: "box-note"}
	note := &corev1.ConfigMap{}
	noted := func() (bool, error) {
		err := direct.Get(ctx, key, note)
		return err == nil && note.Data["image"] == "example/one:1", client.IgnoreNotFound(err)
	}
	if err := eventually(ctx, "a note", noted); err != nil {
		return err
	}
	first := note.UID
	if owner := metav1.GetControllerOf(note); owner == nil || owner.UID != box.GetUID() {
		return fmt.Errorf("the note belongs to %v", owner)
	}
	fmt.Println("created")
	if err := direct.Delete(ctx, note); err != nil {
		return err
	}
	again := func() (bool, error) {
		ok, err := noted()
		return ok && note.UID != first, err
	}
	if err := eventually(ctx, "a second note", again); err != nil {
		return err
	}
	fmt.Println("repaired")
	live := &sandboxv1beta1.Sandbox{}
	marked := func() (bool, error) {
		err := direct.Get(ctx, client.ObjectKeyFromObject(box), live)
		return live.Status.ServiceFQDN == "noted", err
	}
	if err := eventually(ctx, "a status", marked); err != nil {
		return err
	}
	fmt.Println("status")
	if err := direct.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return err
	}
	gone := func() (bool, error) {
		return errors.IsNotFound(direct.Get(ctx, client.ObjectKeyFromObject(box), live)) && errors.IsNotFound(direct.Get(ctx, key, note)), nil
	}
	if err := eventually(ctx, "both gone", gone); err != nil {
		return err
	}
	fmt.Println("gone")
	return nil
}
