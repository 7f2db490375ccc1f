import type { Mutant } from '@stryker-mutator/api/core'

type KeyParts = Pick<Mutant, 'fileName' | 'mutatorName' | 'location'> & { replacement?: string | undefined }

export function keyOf(mutant: KeyParts): string
