// Starts Swagger UI with the description that this program serves.
window.onload = () => {
  window.ui = SwaggerUIBundle({
    url: "/v3/api-docs/thingsboard",
    dom_id: "#swagger-ui",
    deepLinking: true,
    layout: "StandaloneLayout",
    presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
    plugins: [SwaggerUIBundle.plugins.DownloadUrl],
  });
};
