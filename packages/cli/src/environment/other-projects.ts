/** Kinds of projects whose set-up is not known here, by the files that tell of them. */
const kinds: readonly { name: string; files: RegExp; unless?: string }[] = [
  { name: 'Gradle', files: /^(build|settings)\.gradle(\.kts)?$/ },
  { name: 'PDM', files: /^pdm\.lock$/ },
  { name: 'Pipenv without a lock file', files: /^Pipfile$/, unless: 'Pipfile.lock' },
  { name: 'Conda', files: /^environment\.ya?ml$/ },
  { name: 'Deno', files: /^deno\.(jsonc?|lock)$/ },
  { name: 'Bundler', files: /^(Gemfile|gems\.rb)$/ },
  { name: 'Composer', files: /^composer\.(json|lock)$/ },
  { name: 'Mix', files: /^mix\.exs$/ },
  { name: 'sbt', files: /^build\.sbt$/ },
  { name: '.NET', files: /\.(sln|slnx|csproj|fsproj)$/ },
  { name: 'Swift', files: /^Package\.swift$/ },
  { name: 'Bazel', files: /^(MODULE\.bazel|WORKSPACE(\.bazel)?)$/ },
]

/** Those at the root of a repository: `Gradle (build.gradle)`. Pure. */
export function otherProjects(names: Iterable<string>): string[] {
  const all = [...names].sort()
  return kinds.flatMap(({ name, files, unless }) => {
    const found = unless && all.includes(unless) ? undefined : all.find((each) => files.test(each))
    return found === undefined ? [] : [`${name} (${found})`]
  })
}
