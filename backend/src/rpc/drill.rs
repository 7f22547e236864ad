//! `DrillService`.

use bellwether_proto::v1::{self, drill_service_server::DrillService};
use tonic::{Request, Response, Status, async_trait};

use super::{audit, serve::serve};
use crate::ops::{drill::Drills, intake::Intake};

#[derive(Debug)]
pub struct DrillApi {
    pub(crate) drills: Drills,
    pub(crate) intake: Intake,
}

#[async_trait]
impl DrillService for DrillApi {
    serve! {
        drills of drill;
        create_drill(CreateDrillRequest) -> CreateDrillResponse;
        list_drills(ListDrillsRequest) -> ListDrillsResponse { drills };
        get_drill(GetDrillRequest) -> GetDrillResponse;
        update_drill(UpdateDrillRequest) -> UpdateDrillResponse;
        delete_drill(DeleteDrillRequest) -> DeleteDrillResponse, |_| false;
    }

    async fn run_drill(
        &self,
        request: Request<v1::RunDrillRequest>,
    ) -> Result<Response<v1::RunDrillResponse>, Status> {
        let name = request.into_inner().name;
        let drill = self.drills.start(&self.intake, &name).await?;
        let drill = Some(drill);
        Ok(audit::for_resource(name, v1::RunDrillResponse { drill }))
    }
}
