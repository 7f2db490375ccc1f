import { all, type FieldClass, hasOnly, honoured, inert, oneOf, refused } from './field-class.js'

type Classes = Readonly<Record<string, FieldClass>>

const scheduling = inert('there is one node; the scheduler has already chosen it')
const names = inert('names are resolved by the node, which answers whatever server is asked')
const oneUser = inert('all containers of a pod run as one user of the host; ids inside only name it')
const profile = refused('the profile of the isolation tier applies to every container', (value) => {
  const type = typeof value === 'object' && value !== null && 'type' in value ? value.type : undefined
  return oneOf('RuntimeDefault', 'Unconfined')(type)
})
const hostNamespace = refused('a pod never shares a namespace of the host')
const clusterVolume = refused('this node has no driver for it; use emptyDir, configMap, secret, projected or a claim')
const fileOwner = refused('files of a volume belong to the pod’s user')
const port = { ...all(['port', 'host'], honoured) }

const containerFields: Classes = {
  ...all(['name', 'image', 'command', 'args', 'workingDir', 'ports', 'envFrom', 'env', 'resources'], honoured),
  ...all(['restartPolicy', 'volumeMounts', 'livenessProbe', 'readinessProbe', 'startupProbe', 'lifecycle'], honoured),
  ...all(['terminationMessagePath', 'terminationMessagePolicy', 'securityContext', 'stdin', 'tty'], honoured),
  imagePullPolicy: inert('nothing is pulled: images are the tools of this machine'),
  resizePolicy: inert('limits are set when a container starts'),
  restartPolicyRules: refused('only the restart policy decides about restarts'),
  stdinOnce: inert('stdin stays open until the attached client closes it'),
  volumeDevices: refused('there are no block devices to hand in'),
}

/** The class of every field that can be set in a pod, by the short name of its type. A type behind an inert or refused field needs no entry. */
export const fieldClasses: Readonly<Record<string, Classes>> = {
  PodSpec: {
    ...all(['volumes', 'initContainers', 'containers', 'restartPolicy', 'terminationGracePeriodSeconds'], honoured),
    ...all(['activeDeadlineSeconds', 'nodeName', 'hostname', 'hostAliases', 'readinessGates'], honoured),
    ...all(['securityContext', 'resources', 'os'], honoured),
    ...all(['nodeSelector', 'affinity', 'schedulerName', 'tolerations', 'priorityClassName', 'priority'], scheduling),
    ...all(['preemptionPolicy', 'topologySpreadConstraints', 'schedulingGates', 'schedulingGroup'], scheduling),
    ...all(['dnsPolicy', 'dnsConfig', 'subdomain', 'setHostnameAsFQDN'], names),
    ...all(['hostNetwork', 'hostPID', 'hostIPC'], hostNamespace),
    ephemeralContainers: refused('use exec: every tool of this machine is already in the container'),
    ...all(['serviceAccountName', 'serviceAccount'], inert('pods carry no credential of the API')),
    automountServiceAccountToken: inert('no token is mounted, whatever it says'),
    shareProcessNamespace: refused('every container has a process namespace of its own'),
    imagePullSecrets: inert('nothing is pulled'),
    runtimeClassName: honoured,
    enableServiceLinks: inert('Services have no address inside a pod'),
    overhead: honoured,
    hostUsers: inert('every pod has a user namespace'),
    resourceClaims: refused('there are no devices to claim'),
    hostnameOverride: honoured,
    evictionResponders: inert('pods are not evicted'),
  },
  Volume: {
    ...all(['name', 'emptyDir', 'secret', 'configMap', 'downwardAPI', 'projected'], honoured),
    ...all(['persistentVolumeClaim', 'ephemeral'], honoured),
    hostPath: refused('a pod sees nothing of the host but its tools'),
    gitRepo: refused('clone in an init container instead'),
    image: refused('nothing is pulled'),
    ...all(
      ['gcePersistentDisk', 'awsElasticBlockStore', 'nfs', 'iscsi', 'glusterfs', 'rbd', 'flexVolume'],
      clusterVolume,
    ),
    ...all(['cinder', 'cephfs', 'flocker', 'fc', 'azureFile', 'vsphereVolume', 'quobyte', 'azureDisk'], clusterVolume),
    ...all(['photonPersistentDisk', 'portworxVolume', 'scaleIO', 'storageos', 'csi'], clusterVolume),
  },
  EmptyDirVolumeSource: {
    medium: refused('only memory and disk are offered', oneOf('Memory', '')),
    sizeLimit: honoured,
    mode: honoured,
  },
  SecretVolumeSource: { ...all(['secretName', 'items', 'defaultMode', 'optional'], honoured), defaultUser: fileOwner },
  ConfigMapVolumeSource: { ...all(['name', 'items', 'defaultMode', 'optional'], honoured), defaultUser: fileOwner },
  DownwardAPIVolumeSource: { ...all(['items', 'defaultMode'], honoured), defaultUser: fileOwner },
  ProjectedVolumeSource: { ...all(['sources', 'defaultMode'], honoured), defaultUser: fileOwner },
  KeyToPath: { ...all(['key', 'path', 'mode'], honoured), user: fileOwner },
  DownwardAPIVolumeFile: { ...all(['path', 'fieldRef', 'resourceFieldRef', 'mode'], honoured), user: fileOwner },
  ObjectFieldSelector: { apiVersion: inert('there is one version of a pod'), fieldPath: honoured },
  ResourceFieldSelector: all(['containerName', 'resource', 'divisor'], honoured),
  PersistentVolumeClaimVolumeSource: all(['claimName', 'readOnly'], honoured),
  EphemeralVolumeSource: { volumeClaimTemplate: honoured },
  PersistentVolumeClaimTemplate: {
    metadata: honoured,
    spec: honoured,
  },
  ObjectMeta: {
    ...all(['labels', 'annotations'], honoured),
    ...all(
      ['name', 'generateName', 'namespace', 'selfLink', 'uid', 'resourceVersion'],
      inert('the claim is named after its pod'),
    ),
    ...all(['generation', 'creationTimestamp', 'deletionTimestamp'], inert('set by the server')),
    ...all(
      ['deletionGracePeriodSeconds', 'ownerReferences', 'finalizers', 'managedFields'],
      inert('set by the server'),
    ),
  },
  PersistentVolumeClaimSpec: {
    ...all(['accessModes', 'resources', 'storageClassName'], honoured),
    ...all(['selector', 'volumeName', 'dataSource', 'dataSourceRef'], refused('claims are new, empty directories')),
    volumeMode: refused('there are no block devices to hand in', oneOf('Filesystem')),
    volumeAttributesClassName: inert('a directory has no attributes to choose'),
  },
  VolumeResourceRequirements: all(['limits', 'requests'], inert('claims are directories; the disk is the limit')),
  VolumeProjection: {
    ...all(['secret', 'downwardAPI', 'configMap'], honoured),
    serviceAccountToken: refused('pods carry no credential of the API'),
    ...all(['clusterTrustBundle', 'podCertificate'], refused('this node signs nothing')),
  },
  SecretProjection: all(['name', 'items', 'optional'], honoured),
  ConfigMapProjection: all(['name', 'items', 'optional'], honoured),
  DownwardAPIProjection: all(['items'], honoured),
  Container: containerFields,
  ContainerPort: {
    ...all(['name', 'containerPort'], honoured),
    protocol: inert('a list of ports opens and closes nothing'),
    ...all(['hostPort', 'hostIP'], refused('a pod never listens on the host; use port-forward')),
  },
  EnvFromSource: all(['prefix', 'configMapRef', 'secretRef'], honoured),
  ConfigMapEnvSource: all(['name', 'optional'], honoured),
  SecretEnvSource: all(['name', 'optional'], honoured),
  EnvVar: all(['name', 'value', 'valueFrom'], honoured),
  EnvVarSource: {
    ...all(['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef'], honoured),
    fileKeyRef: refused('variables come from the pod, ConfigMaps and Secrets'),
  },
  ConfigMapKeySelector: all(['name', 'key', 'optional'], honoured),
  SecretKeySelector: all(['name', 'key', 'optional'], honoured),
  ResourceRequirements: {
    limits: refused('only cpu and memory are limited here', hasOnly('cpu', 'memory', 'ephemeral-storage')),
    requests: inert('the scheduler counts them; the node promises no share'),
    claims: refused('there are no devices to claim'),
  },
  VolumeMount: {
    ...all(['name', 'readOnly', 'mountPath', 'subPath', 'subPathExpr'], honoured),
    recursiveReadOnly: inert('a read-only mount has no writable mount below it'),
    mountPropagation: refused('mounts never leave a container', oneOf('None', 'HostToContainer')),
    bindMountOptions: refused('mounts are plain'),
  },
  Probe: {
    ...all(['exec', 'httpGet', 'tcpSocket', 'initialDelaySeconds', 'timeoutSeconds', 'periodSeconds'], honoured),
    ...all(['successThreshold', 'failureThreshold', 'terminationGracePeriodSeconds'], honoured),
    grpc: refused('probe with httpGet, tcpSocket or exec'),
  },
  ExecAction: all(['command'], honoured),
  HTTPGetAction: {
    ...all(['path', 'scheme', 'httpHeaders'], honoured),
    ...port,
    protocol: refused('probes speak HTTP/1.1', oneOf('HTTP1', 'HTTP/1.1')),
  },
  HTTPHeader: all(['name', 'value'], honoured),
  TCPSocketAction: port,
  Lifecycle: all(['postStart', 'preStop', 'stopSignal'], honoured),
  LifecycleHandler: all(['exec', 'httpGet', 'tcpSocket', 'sleep'], honoured),
  SleepAction: all(['seconds'], honoured),
  SecurityContext: {
    ...all(['runAsUser', 'runAsGroup', 'runAsNonRoot', 'readOnlyRootFilesystem'], honoured),
    capabilities: honoured,
    privileged: refused('no container has power over the host'),
    allowPrivilegeEscalation: inert('no process ever gains a privilege'),
    procMount: refused('/proc is always the masked one', oneOf('Default')),
    ...all(['seccompProfile', 'appArmorProfile'], profile),
    seLinuxOptions: inert('containers carry no label of their own'),
    windowsOptions: refused('this node runs Linux'),
  },
  Capabilities: {
    add: refused('containers have no capability'),
    drop: inert('all capabilities are dropped anyway'),
  },
  PodSecurityContext: {
    ...all(['runAsUser', 'runAsGroup', 'runAsNonRoot'], honoured),
    ...all(['supplementalGroups', 'supplementalGroupsPolicy', 'fsGroup', 'fsGroupChangePolicy'], oneUser),
    sysctls: refused('a pod may not change the kernel'),
    ...all(['seccompProfile', 'appArmorProfile'], profile),
    ...all(['seLinuxOptions', 'seLinuxChangePolicy'], inert('containers carry no label of their own')),
    windowsOptions: refused('this node runs Linux'),
  },
  HostAlias: all(['ip', 'hostnames'], honoured),
  PodReadinessGate: all(['conditionType'], honoured),
  PodOS: { name: refused('this node runs Linux', oneOf('linux')) },
}
