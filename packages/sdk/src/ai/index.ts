export {
  type CommandOutput,
  type SandboxTool,
  type SandboxTools,
  type SandboxToolsOptions,
  sandboxTools,
} from './sandbox-tools.js'
