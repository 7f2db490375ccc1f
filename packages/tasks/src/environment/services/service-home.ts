import type { Workspace } from '../../sandbox/workspace.js'

/** Where services keep their data: in the home directory, which is part of a snapshot. */
export const serviceHome = ({ home }: Workspace): string => `${home}/.corral-services`
