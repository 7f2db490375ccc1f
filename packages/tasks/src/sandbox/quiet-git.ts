/**
 * git as the platform runs it inside a sandbox: no hook, no signature, no daemon and no clean-up in the background,
 * whatever the agent has configured. `core.sparseCheckout` is off so that files outside a sparse checkout are taken too.
 */
export const quietGit: string = [
  'git',
  ...[
    'core.hooksPath=/dev/null',
    'core.fsmonitor=false',
    'core.untrackedCache=false',
    'core.splitIndex=false',
    'core.safecrlf=false',
    'core.sparseCheckout=false',
    'core.quotePath=true',
    'advice.detachedHead=false',
    'commit.gpgsign=false',
    'gc.auto=0',
    'maintenance.auto=false',
    'submodule.recurse=false',
  ].map((setting) => `-c ${setting}`),
].join(' ')
