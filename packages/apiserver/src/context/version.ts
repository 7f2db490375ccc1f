/** The document behind `/version`. Clients read major, minor and a semantic `gitVersion`. */
export function versionDocument(gitVersion: string): object {
  const [major = '1', minor = '34'] = gitVersion.replace(/^v/, '').split('.')
  return Object.freeze({
    major,
    minor,
    gitVersion,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: 'none',
    compiler: 'node',
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  })
}
