/**
 * git as the platform runs it inside a sandbox: no hook, no signature, no daemon and no clean-up in the background,
 * whatever the agent has configured, and no index written on the way, after which git no longer knows that a file may have
 * changed in the second it was checked out. Files are read as they are on disk: their mode, kind and case count, and one that was
 * written again at the same size and time is read again. `core.sparseCheckout` is off so that files outside a sparse checkout
 * are taken too.
 */
export const quietGit: string = [
  'git --no-optional-locks',
  ...[
    'core.hooksPath=/dev/null',
    'core.fsmonitor=false',
    'core.fileMode=true',
    'core.symlinks=true',
    'core.ignoreCase=false',
    'core.trustctime=true',
    'core.checkStat=default',
    'core.ignoreStat=false',
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
