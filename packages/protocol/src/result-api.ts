import * as z from 'zod'

/** How a file of a result differs from the base. */
export const fileStatuses = ['added', 'modified', 'deleted', 'renamed', 'type_changed'] as const

/** One file of a task's change. */
export const changedFileSchema = z.object({
  path: z.string(),
  /** Where a renamed file was before. */
  previous_path: z.string().optional(),
  status: z.enum(fileStatuses),
  additions: z.number().int().nonnegative(),
  deletions: z.number().int().nonnegative(),
  /** Its lines are not counted. */
  binary: z.boolean(),
  /** Size of its part of the patch: `GET /tasks/{id}/diff?path=`. */
  patch_bytes: z.number().int().nonnegative(),
})
export type ChangedFile = z.infer<typeof changedFileSchema>

/** `GET /tasks/{id}/files`. */
export const changedFilesSchema = z.object({
  /** In the order of the patch. */
  files: z.array(changedFileSchema),
  additions: z.number().int().nonnegative(),
  deletions: z.number().int().nonnegative(),
  /** There are more files than are listed, or the change was too large to be kept as a patch. */
  truncated: z.boolean(),
})
export type ChangedFiles = z.infer<typeof changedFilesSchema>

/** Which side of the change a file is read from: the commit the work started from, or the result. */
export const fileRefSchema = z.enum(['base', 'head'])
export type FileRef = z.infer<typeof fileRefSchema>

/** A file kept with the task: `GET /tasks/{id}/artifacts/{name}`. */
export const artifactSchema = z.object({
  name: z.string(),
  /** The path of the request it was taken from; absent for what the platform itself kept. */
  path: z.string().optional(),
  size_bytes: z.number().int().nonnegative(),
})
export type Artifact = z.infer<typeof artifactSchema>

export const artifactListSchema = z.object({ artifacts: z.array(artifactSchema) })
export type ArtifactList = z.infer<typeof artifactListSchema>

/** How a change comes into a work tree: merged into the branch that is checked out, or as edits that are not committed. */
export const applyHowSchema = z.enum(['merge', 'edits'])
export type ApplyHow = z.infer<typeof applyHowSchema>

/** `POST /tasks/{id}/apply`. */
export const applyRequestSchema = z.strictObject({ how: applyHowSchema })
export type ApplyRequest = z.infer<typeof applyRequestSchema>

export const appliedChangeSchema = z.object({
  how: applyHowSchema,
  /** The directory on the platform's machine that has the change now. */
  work_tree: z.string(),
  /** The branch that is checked out there. */
  branch: z.string(),
  /** Where it stands now. */
  commit: z.string(),
  /** Nothing else was on the branch since the task began: no merge commit was made. */
  fast_forward: z.boolean(),
})
export type AppliedChange = z.infer<typeof appliedChangeSchema>

/** What an artifact may weigh. */
export const artifactLimits = { paths: 50, fileBytes: 64 * 1024 * 1024, totalBytes: 256 * 1024 * 1024 } as const
