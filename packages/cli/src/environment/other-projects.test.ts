import { expect, it } from 'vitest'
import { otherProjects } from './other-projects.js'

it.each([
  { files: ['build.gradle.kts', 'gradlew'], others: ['Gradle (build.gradle.kts)'] },
  { files: ['pyproject.toml', 'pdm.lock'], others: ['PDM (pdm.lock)'] },
  { files: ['Gemfile', 'Gemfile.lock', 'App.sln'], others: ['Bundler (Gemfile)', '.NET (App.sln)'] },
  { files: ['Pipfile'], others: ['Pipenv without a lock file (Pipfile)'] },
  { files: ['Pipfile', 'Pipfile.lock'], others: [] },
  { files: ['package.json', 'go.mod', 'README.md'], others: [] },
])('of $files it names $others as projects whose set-up is not known', ({ files, others }) => {
  expect(otherProjects(files)).toEqual(others)
})
