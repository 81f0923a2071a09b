/** The paths of the APIs, by which routes and upstream requests are named. */

/** Every path of the APIs, as clients call it with its version prefix. */
export type RoutePath =
  | "/v1/messages"
  | "/v1/messages/count_tokens"
  | "/v1/responses"
  | "/v1/responses/input_tokens"
  | "/v1/responses/compact"
  | "/v1/responses/{id}"
  | "/v1/responses/{id}/cancel"
  | "/v1/chat/completions"
  | "/v1/completions"
  | "/v1/embeddings"
  | "/v1/models"
  | "/v1beta/models/{model}:streamGenerateContent"
  | "/v1beta/models/{model}:generateContent"
  | "/v1beta/models/{model}:countTokens"
  | "/v1beta/interactions"
  | "/model/{model}/invoke"
  | "/model/{model}/invoke-with-response-stream"
  | "/model/{model}/converse"
  | "/model/{model}/converse-stream"
  | "/api/chat";
