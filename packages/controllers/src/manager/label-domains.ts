import { readFile } from 'node:fs/promises'
import { errorCode } from '@corral/resources'
import { defaultLabelDomains } from '../sandbox-claim/index.js'

/** Where the ConfigMap `agent-sandbox-config` is mounted. */
export const labelDomainsFile = '/etc/sandbox-config/allowed-label-domains'

/** The domains under which claims may label Pods: the file's, or the default where it is absent or empty. Read once. */
export async function readLabelDomains(path: string = labelDomainsFile): Promise<readonly string[]> {
  try {
    const domains = parseLabelDomains(await readFile(path, 'utf8'))
    return domains.length > 0 ? domains : defaultLabelDomains
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return defaultLabelDomains
    throw error
  }
}

export function parseLabelDomains(text: string): string[] {
  return text
    .split(/[,\r\n]/)
    .map((domain) => domain.trim().toLowerCase())
    .filter(Boolean)
}
