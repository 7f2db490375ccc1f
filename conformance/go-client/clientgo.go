package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

// useClientGo works with typed clients in protobuf, shared informers, paging, apply, and leader election.
func useClientGo(ctx context.Context, config *rest.Config, namespace string) error {
	typed := rest.CopyConfig(config)
	typed.ContentType = runtime.ContentTypeProtobuf
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	clients, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return err
	}
	steps := []struct {
		name string
		run  func(context.Context, *kubernetes.Clientset, string) error
	}{{"informer", informerStep}, {"apply", applyStep}, {"pages", pagesStep}, {"election", electionStep}}
	for _, step := range steps {
		if err := step.run(ctx, clients, namespace); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Println(step.name)
	}
	return dynamicStep(ctx, config, namespace)
}

type heard struct {
	sync.Mutex
	events []string
}

func (h *heard) add(verb string, object any) {
	h.Lock()
	defer h.Unlock()
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	h.events = append(h.events, verb+" "+object.(*corev1.ConfigMap).Name)
}

func (h *heard) is(wanted ...string) bool {
	h.Lock()
	defer h.Unlock()
	return fmt.Sprint(h.events) == fmt.Sprint(wanted)
}

// A shared informer hears create, update and delete once each, and an update on an old version is a conflict.
func informerStep(ctx context.Context, clients *kubernetes.Clientset, namespace string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "step=informer" }))
	informer := factory.Core().V1().ConfigMaps().Informer()
	told := &heard{}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { told.add("add", object) },
		UpdateFunc: func(_, object any) { told.add("update", object) },
		DeleteFunc: func(object any) { told.add("delete", object) },
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("never synced")
	}
	maps := clients.CoreV1().ConfigMaps(namespace)
	labels := map[string]string{"step": "informer"}
	first, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	stale := first.DeepCopy()
	first.Data = map[string]string{"a": "1"}
	if _, err := maps.Update(ctx, first, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if _, err := maps.Update(ctx, stale, metav1.UpdateOptions{}); !errors.IsConflict(err) {
		return fmt.Errorf("an update on an old version: %v", err)
	}
	if err := maps.Delete(ctx, "one", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(first.UID))}); err != nil {
		return err
	}
	return eventually(ctx, "add, update, delete", func() (bool, error) {
		return told.is("add one", "update one", "delete one"), nil
	})
}

// Two managers apply; what the second takes by force belongs to it.
func applyStep(ctx context.Context, clients *kubernetes.Clientset, namespace string) error {
	maps := clients.CoreV1().ConfigMaps(namespace)
	wanted := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"a": "1"})
	if _, err := maps.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "first"}); err != nil {
		return err
	}
	other := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"a": "2"})
	if _, err := maps.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "second"}); !errors.IsConflict(err) {
		return fmt.Errorf("a conflicting apply: %v", err)
	}
	taken, err := maps.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "second", Force: true})
	if err != nil {
		return err
	}
	mine, err := applycorev1.ExtractConfigMap(taken, "first")
	if err != nil {
		return err
	}
	if _, isLeft := mine.Data["a"]; isLeft || taken.Data["a"] != "2" {
		return fmt.Errorf("after a forced apply: %v, the first still owns %v", taken.Data, mine.Data)
	}
	return nil
}

func pagesStep(ctx context.Context, clients *kubernetes.Clientset, namespace string) error {
	secrets := clients.CoreV1().Secrets(namespace)
	for index := range 5 {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("page-%d", index)}}
		if _, err := secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	pages := 0
	lister := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		pages++
		return secrets.List(ctx, options)
	})
	lister.PageSize = 2
	seen := 0
	count := func(runtime.Object) error { seen++; return nil }
	if err := lister.EachListItem(ctx, metav1.ListOptions{}, count); err != nil {
		return err
	}
	if seen < 5 || pages < 3 {
		return fmt.Errorf("%d secrets in %d pages", seen, pages)
	}
	return nil
}

// Two candidates want one lease: one leads; when it lets go, the other does.
func electionStep(ctx context.Context, clients *kubernetes.Clientset, namespace string) error {
	leads := make(chan string, 2)
	campaign := func(name string) context.CancelFunc {
		ctx, resign := context.WithCancel(ctx)
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "election", Namespace: namespace},
			Client:     clients.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		go leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock:            lock,
			LeaseDuration:   15 * time.Second,
			RenewDeadline:   10 * time.Second,
			RetryPeriod:     200 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- name },
				OnStoppedLeading: func() {},
			},
		})
		return resign
	}
	next := func() (string, error) {
		select {
		case name := <-leads:
			return name, nil
		case <-time.After(30 * time.Second):
			return "", fmt.Errorf("nobody leads")
		}
	}
	resign := map[string]context.CancelFunc{"a": campaign("a"), "b": campaign("b")}
	first, err := next()
	if err != nil {
		return err
	}
	resign[first]()
	second, err := next()
	if err != nil {
		return err
	}
	resign[second]()
	if first == second {
		return fmt.Errorf("%s led twice", first)
	}
	return nil
}

// The dynamic client creates a Sandbox and changes it in the presence of another writer.
func dynamicStep(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	resource := schema.GroupVersionResource{Group: "agents.x-k8s.io", Version: "v1beta1", Resource: "sandboxes"}
	sandboxes := client.Resource(resource).Namespace(namespace)
	if _, err := sandboxes.Create(ctx, newSandbox("dynamic"), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("dynamic: %w", err)
	}
	var group sync.WaitGroup
	failures := make(chan error, 4)
	for index := range 4 {
		group.Go(func() {
			failures <- retry.RetryOnConflict(conflictBackoff, func() error {
				live, err := sandboxes.Get(ctx, "dynamic", metav1.GetOptions{})
				if err != nil {
					return err
				}
				labels := live.GetLabels()
				if labels == nil {
					labels = map[string]string{}
				}
				labels[fmt.Sprintf("writer-%d", index)] = "was-here"
				live.SetLabels(labels)
				_, err = sandboxes.Update(ctx, live, metav1.UpdateOptions{})
				return err
			})
		})
	}
	group.Wait()
	for range 4 {
		if err := <-failures; err != nil {
			return fmt.Errorf("dynamic: %w", err)
		}
	}
	live, err := sandboxes.Get(ctx, "dynamic", metav1.GetOptions{})
	if err != nil || len(live.GetLabels()) != 4 {
		return fmt.Errorf("dynamic: labels %v, %v", live.GetLabels(), err)
	}
	fmt.Println("dynamic")
	return nil
}
