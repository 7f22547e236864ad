//! `ViewService`.

use bellwether_proto::v1::{self, view_service_server::ViewService};
use tonic::async_trait;

use super::serve::serve;
use crate::ops::saved_view::SavedViews;

#[derive(Debug)]
pub struct ViewApi {
    pub(crate) views: SavedViews,
}

#[async_trait]
impl ViewService for ViewApi {
    serve! {
        views of view;
        create_view(CreateViewRequest) -> CreateViewResponse;
        list_views(ListViewsRequest) -> ListViewsResponse { views };
        get_view(GetViewRequest) -> GetViewResponse;
        update_view(UpdateViewRequest) -> UpdateViewResponse;
        delete_view(DeleteViewRequest) -> DeleteViewResponse, |it| it.force;
    }
}
