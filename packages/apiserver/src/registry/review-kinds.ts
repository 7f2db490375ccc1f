import {
  LocalSubjectAccessReviews,
  type ResourceKind,
  SelfSubjectAccessReviews,
  SelfSubjectReviews,
  SelfSubjectRulesReviews,
  SubjectAccessReviews,
  TokenReviews,
} from '@corral/resources'
import { mayDo } from '../auth/access.js'
import { badRequest, type FieldError, invalid, invalidValue } from '../errors/api-error.js'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { accessReviewErrors } from '../validation/access-kinds.js'
import { describeKind, type KindDefinition, type ReviewContext } from './kind-definition.js'

function reviewKind(
  kind: ResourceKind,
  answer: (spec: JsonObject, context: ReviewContext) => JsonObject | Promise<JsonObject>,
  errorsOf: (spec: JsonObject, namespace: string) => FieldError[] = () => [],
): KindDefinition {
  return describeKind(kind, {
    verbs: ['create'],
    async review(body, context) {
      const spec = isJsonObject(body.spec) ? body.spec : {}
      const errors = errorsOf(spec, context.namespace)
      if (errors.length > 0) throw invalid({ group: kind.group, kind: '' }, '', errors)
      return { ...body, status: await answer(spec, context) }
    },
  })
}

/** Questions about who may do what: answered from the one rule there is, and never stored. */
export const reviewKinds: KindDefinition[] = [
  reviewKind(
    SelfSubjectAccessReviews,
    (spec, { user }) => accessAnswer(user.name, user.groups, spec),
    (spec) => accessReviewErrors(spec, true),
  ),
  ...[SubjectAccessReviews, LocalSubjectAccessReviews].map((kind) =>
    reviewKind(
      kind,
      (spec) => accessAnswer(String(spec.user ?? ''), (spec.groups as string[] | undefined) ?? [], spec),
      (spec, namespace) => [
        ...accessReviewErrors(spec, false),
        ...(kind === LocalSubjectAccessReviews ? foreignNamespace(spec, namespace) : []),
      ],
    ),
  ),
  reviewKind(SelfSubjectRulesReviews, (spec, { user }) => {
    if (!spec.namespace) throw badRequest('no namespace on request')
    const everything = mayDo(user, { verb: '*', group: '*', resource: '*' })
    return {
      resourceRules: everything ? [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] : [],
      nonResourceRules: everything ? [{ verbs: ['*'], nonResourceURLs: ['*'] }] : [],
      incomplete: false,
    }
  }),
  reviewKind(SelfSubjectReviews, (_spec, { user }) => ({
    userInfo: { username: user.name, groups: [...user.groups] },
  })),
  reviewKind(TokenReviews, async (spec, { verifyToken }) => {
    if (!spec.token) throw badRequest('token is required for TokenReview in authentication')
    const user = await verifyToken(String(spec.token ?? ''))
    if (!user) return { user: {}, error: 'invalid bearer token' }
    return {
      authenticated: true,
      user: { username: user.name, groups: [...user.groups] },
      audiences: spec.audiences ?? [],
    }
  }),
]

/** A local review is about the namespace it is asked in. */
function foreignNamespace({ resourceAttributes }: JsonObject, namespace: string): FieldError[] {
  const asked = isJsonObject(resourceAttributes) ? resourceAttributes.namespace : undefined
  if (asked === namespace || !isJsonObject(resourceAttributes)) return []
  return [invalidValue('spec.resourceAttributes.namespace', asked ?? '', 'must match metadata.namespace')]
}

function accessAnswer(name: string, groups: readonly string[], spec: JsonObject): JsonObject {
  const attributes = isJsonObject(spec.resourceAttributes) ? spec.resourceAttributes : {}
  const allowed = mayDo(
    { name, groups },
    {
      verb: String(attributes.verb ?? 'get'),
      group: String(attributes.group ?? ''),
      resource: String(attributes.resource ?? ''),
    },
  )
  return allowed ? { allowed: true } : { allowed: false, reason: 'service accounts may only ask reviews' }
}
